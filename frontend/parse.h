/* The parser's entry.
 *
 * The one idea: parsing always gives a tree. Faulty text is diagnosed, once per fault, and left out
 * (AST_ERROR), and the statements and items around it are in the tree as usual. */
#ifndef VISA_FRONTEND_PARSE_H
#define VISA_FRONTEND_PARSE_H

#include "frontend/ast.h"
#include "frontend/source.h"

/* Returns the AST_FILE node of a file of the map: never NULL, partial when errors were added to `diags`. */
ast *parse_file(source_map *sources, int file, arena *a, diag_list *diags);
/* The same of whole items: of the lines between two bytes. What it says is about them alone, so that only a part without errors is what the
 * file has there. */
ast *parse_file_part(source_map *sources, int file, uint32_t begin, uint32_t end, arena *a, diag_list *diags);
/* Has text inside this range been left out? */
bool parse_was_broken(const diag_list *diags, src_range range);

/* Reads mapping expressions that stand alone, one after the other, with the scanner set up once. */
typedef struct mapping_parser mapping_parser;
mapping_parser *mapping_parser_new(arena *a);
/* The AST_MAP node of what is written between `m![` and `]`, in `a`; NULL when errors were added to `diags`. The parser's own arena may be
 * the same one, when it is never rewound after the parser. */
ast *parse_mapping(mapping_parser *parser, const char *text, size_t bytes, arena *a, diag_list *diags);

#endif
