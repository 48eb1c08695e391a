/* Bytes of a file of the source tree inside a program.
 *
 * The one idea: the assembler copies the file, so that the compiler never sees its bytes as numbers. VISA_FOLDER is the repository, which
 * CMake defines for the source that embeds; EMBED_FILE(symbol, file) declares visa_embed_SYMBOL and visa_embed_end_SYMBOL, where a NUL is.
 */
#ifndef VISA_SUPPORT_EMBED_H
#define VISA_SUPPORT_EMBED_H

#define EMBED_FILE(symbol, file) \
    __asm__(".pushsection .rodata\n" \
            ".globl visa_embed_" #symbol "\n" \
            ".hidden visa_embed_" #symbol "\n" \
            "visa_embed_" #symbol ":\n" \
            ".incbin \"" VISA_FOLDER "/" file "\"\n" \
            ".globl visa_embed_end_" #symbol "\n" \
            ".hidden visa_embed_end_" #symbol "\n" \
            "visa_embed_end_" #symbol ":\n" \
            ".byte 0\n" \
            ".popsection\n"); \
    extern const unsigned char visa_embed_##symbol[], visa_embed_end_##symbol[];

#endif
