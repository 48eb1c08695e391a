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

# What users run has libelf and jansson inside: to find and map them costs a third of starting visac (docs/performance.md).
option(VISA_STATIC "link libelf and jansson statically" OFF)
if(VISA_STATIC)
  find_library(VISA_ELF_ARCHIVE libelf.a)
  find_library(VISA_Z_ARCHIVE libz.a)
  find_library(VISA_JANSSON_ARCHIVE libjansson.a)
  if(VISA_ELF_ARCHIVE AND VISA_Z_ARCHIVE AND VISA_JANSSON_ARCHIVE)
    set_target_properties(PkgConfig::LIBELF PROPERTIES INTERFACE_LINK_LIBRARIES "${VISA_ELF_ARCHIVE};${VISA_Z_ARCHIVE}")
    set_target_properties(PkgConfig::JANSSON PROPERTIES INTERFACE_LINK_LIBRARIES "${VISA_JANSSON_ARCHIVE}")
    add_link_options(-Wl,-z,now)
    # A program at a fixed place: nothing in its tables is relocated, so their pages are not written when it starts.
    string(APPEND CMAKE_EXE_LINKER_FLAGS " -no-pie")
  else()
    message(STATUS "libelf, libz or jansson is not there as an archive: the shared ones are linked")
  endif()
endif()

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
