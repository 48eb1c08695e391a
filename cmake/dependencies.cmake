# Every external component, found once. What is missing ends the configuration with the name of the package to install,
# which cmake/packages.txt knows; the reasons for each component are in docs/dependencies.md.
function(visa_missing what component)
  file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/packages.txt rows REGEX "^[^#].* ${component}$")
  string(REGEX MATCH "^[^ ]+" package "${rows}")
  message(FATAL_ERROR "${what} is missing: apt-get install ${package} (or ./visa demo, which installs all that is missing)")
endfunction()

find_package(PkgConfig)
if(NOT PkgConfig_FOUND)
  visa_missing("pkg-config" pkg-config)
endif()

foreach(component libelf jansson libmicrohttpd check)
  string(TOUPPER ${component} prefix)
  pkg_check_modules(${prefix} IMPORTED_TARGET ${component})
  if(NOT ${prefix}_FOUND)
    visa_missing("${component}" ${component})
  endif()
endforeach()

find_library(VISA_ELF_ARCHIVE libelf.a)
find_library(VISA_Z_ARCHIVE libz.a)
find_library(VISA_JANSSON_ARCHIVE libjansson.a)
find_library(VISA_C_ARCHIVE libc.a)
if(VISA_ELF_ARCHIVE AND VISA_Z_ARCHIVE AND VISA_JANSSON_ARCHIVE)
  set(VISA_ARCHIVES ON)
else()
  message(STATUS "libelf, libz or jansson is not there as an archive: the shared ones are linked")
endif()

# All programs have libelf and jansson inside, where they may: to find and map them costs a third of starting one (docs/performance.md).
option(VISA_STATIC "link libelf and jansson statically" OFF)
set(VISA_ARCHIVES_WANTED $<TARGET_PROPERTY:VISA_WHOLE>)
if(VISA_STATIC AND VISA_ARCHIVES)
  set(VISA_ARCHIVES_WANTED ON)
  add_link_options(-Wl,-z,now)
  # A program at a fixed place: nothing in its tables is relocated, so their pages are not written when it starts.
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -no-pie")
endif()
if(VISA_ARCHIVES)
  foreach(component LIBELF JANSSON)
    get_target_property(shared PkgConfig::${component} INTERFACE_LINK_LIBRARIES)
    set(archives_LIBELF ${VISA_ELF_ARCHIVE} ${VISA_Z_ARCHIVE})
    set(archives_JANSSON ${VISA_JANSSON_ARCHIVE})
    # Archives are not made for a place that is found when they are loaded: what is loaded (libvisa.so, a plugin) takes the shared ones.
    set(wanted $<AND:$<BOOL:${VISA_ARCHIVES_WANTED}>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>>)
    set_target_properties(PkgConfig::${component} PROPERTIES INTERFACE_LINK_LIBRARIES
      "$<${wanted}:${archives_${component}}>;$<$<NOT:${wanted}>:${shared}>")
  endforeach()
endif()

# What a compile runs lies in one place, so that starting it maps few pages: the script of GNU ld, with the list of start_order.py in front of
# its other code. One section stays one, since debuggers and valgrind know but one `.text`. Another linker orders code as it likes.
set(VISA_START_ORDER ${CMAKE_SOURCE_DIR}/cmake/start_order.ld)
execute_process(COMMAND ${CMAKE_LINKER} -static -no-pie --verbose OUTPUT_VARIABLE script ERROR_QUIET)
if(script MATCHES "\n=====+\n(.*)\n=====+")
  string(REPLACE "*(.text.unlikely " "INCLUDE ${VISA_START_ORDER}\n    *(.text.unlikely " ordered "${CMAKE_MATCH_1}")
  if(NOT ordered STREQUAL CMAKE_MATCH_1)
    set(VISA_START_SCRIPT ${CMAKE_BINARY_DIR}/start.ld)
    file(CONFIGURE OUTPUT ${VISA_START_SCRIPT} CONTENT "${ordered}\n" @ONLY)
  endif()
endif()

# The C library of a program that is linked whole. glibc's asks the processor 70 questions before main, each of which is a trap in a virtual
# machine: a half of starting a program there (docs/performance.md). musl's asks none. The objects, and the archives that they are linked with,
# are compiled against glibc's headers all the same: what these lay down is the same in musl's (test/layouts.c). Where musl is missing, glibc's
# library is linked.
find_file(VISA_MUSL_SPECS musl-gcc.specs PATHS /usr/lib/x86_64-linux-musl /usr/lib/musl/lib /usr/local/musl/lib)
if(VISA_MUSL_SPECS AND VISA_ARCHIVES AND CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  # Later releases of glibc have other names for functions, which musl may lack.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/musl_probe.c CONTENT [[
#include <ctype.h>
#include <jansson.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    int number = 0;
    json_t *json = json_loads(words[0], 0, NULL);
    Elf *elf = elf_memory(words[0], 1);
    return sscanf(words[0], "%d", &number) + (int)strtoull(words[0], NULL, 0) + (json && elf && count);
}
]] @ONLY)
  try_compile(VISA_MUSL ${CMAKE_BINARY_DIR}/musl_probe SOURCES ${CMAKE_BINARY_DIR}/musl_probe.c ${CMAKE_SOURCE_DIR}/tools/musl.c
    CMAKE_FLAGS -DCMAKE_POSITION_INDEPENDENT_CODE=OFF LINK_OPTIONS -specs=${VISA_MUSL_SPECS} -static -no-pie
    LINK_LIBRARIES ${VISA_ELF_ARCHIVE} ${VISA_Z_ARCHIVE} ${VISA_JANSSON_ARCHIVE})
endif()
if(NOT VISA_MUSL)
  message(STATUS "musl (musl-dev) is not there, or not for this system: visac is linked with glibc, and starts slower")
endif()

# A file that the linker has written piece by piece lies in the system's memory in as many pieces, each of which is mapped by itself when a program
# is started (docs/performance.md). cp writes large ones.
function(visa_in_one_piece target)
  add_custom_command(TARGET ${target} POST_BUILD COMMAND cp $<TARGET_FILE:${target}> $<TARGET_FILE:${target}>.whole
    COMMAND mv $<TARGET_FILE:${target}>.whole $<TARGET_FILE:${target}> VERBATIM)
endfunction()

# A program without a dynamic linker, at a fixed place: everything is inside, the C library too. What it links loads no library. Under
# sanitizers, and where an archive is missing, it is linked as others are.
function(visa_link_whole program)
  if(VISA_ARCHIVES AND VISA_C_ARCHIVE AND NOT VISA_SANITIZE)
    set_target_properties(${program} PROPERTIES VISA_WHOLE ON)
    target_link_options(${program} PRIVATE -static -no-pie -Wl,--gc-sections -Wl,-Map=$<TARGET_FILE:${program}>.map)
    if(VISA_MUSL)
      # A thread has as much stack as it has with glibc: musl's own measure is 128 KiB.
      target_link_options(${program} PRIVATE -specs=${VISA_MUSL_SPECS} -Wl,-z,stack-size=8388608)
      target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tools/musl.c)
    endif()
    visa_in_one_piece(${program})
    if(VISA_START_SCRIPT)
      target_link_options(${program} PRIVATE -Wl,-T,${VISA_START_SCRIPT})
      set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${VISA_START_SCRIPT} ${VISA_START_ORDER})
    endif()
  endif()
endfunction()

find_package(FLEX)
if(NOT FLEX_FOUND)
  visa_missing("flex" flex)
endif()
find_package(BISON 3.8)
if(NOT BISON_FOUND)
  visa_missing("bison 3.8 or later" bison)
endif()
find_package(Threads REQUIRED)

find_package(LLVM 19.1 CONFIG PATHS /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_FOUND)
  visa_missing("LLVM 19" llvm)
endif()

# A second opinion on mappings for tests and bench/; nothing else needs it.
pkg_check_modules(ISL QUIET IMPORTED_TARGET isl)
if(NOT ISL_FOUND)
  message(STATUS "isl is not installed (libisl-dev): its tests and its column in bench/derive are left out")
endif()

# Functions to any number of bits, as a judge of the machine's.
pkg_check_modules(MPFR QUIET IMPORTED_TARGET mpfr)
if(NOT MPFR_FOUND)
  message(STATUS "MPFR is not installed (libmpfr-dev): the error of the Vector Engine's functions is not measured")
endif()

# For --explore in several processes; only the plugin libvisa_mpi links it.
find_package(MPI COMPONENTS C QUIET)
if(NOT MPI_C_FOUND)
  message(STATUS "MPI is not installed (libopenmpi-dev): the plugin for --explore under mpirun and its test are left out")
endif()
