# What `cmake --install` puts where, and the Debian packages that CPack makes of it: visac (programs, with what visac becomes where a library is needed, manual pages, completions),
# libvisa0 (the library), libvisa-reference (the reference generator, which brings LLVM), libvisa-mpi (the plugin for mpirun), libvisa-dev
# (headers and what finds them).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS visac visa-run visa-objdump visa-lsp visa-explorer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT visac)
install(TARGETS visac-plugins RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/visac COMPONENT visac)
if(TARGET visa_mpi)
  install(TARGETS visa_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/visac COMPONENT mpi)
endif()
install(TARGETS visa_reference LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/visac COMPONENT reference)
install(TARGETS visa_shared EXPORT visa-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/include/visa.h ${CMAKE_SOURCE_DIR}/include/visa_editor.h ${CMAKE_SOURCE_DIR}/include/visa_run.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# find_package(visa), which gives visa::visa, and pkg-config visa.
install(EXPORT visa-targets NAMESPACE visa:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/visa COMPONENT development)
file(WRITE ${CMAKE_BINARY_DIR}/visa-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/visa-targets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/visa-config-version.cmake COMPATIBILITY SameMinorVersion)
# Seen from the file itself, so that an installation can be moved.
file(RELATIVE_PATH VISA_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/visa.pc.in ${CMAKE_BINARY_DIR}/visa.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/visa-config.cmake ${CMAKE_BINARY_DIR}/visa-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/visa COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/visa.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# Manual pages and completions, from the rows of the options.
set(pages)
foreach(program visac visa-run visa-objdump visa-lsp visa-explorer)
  foreach(form man bash zsh fish)
    set(page ${CMAKE_BINARY_DIR}/pages/${form}/${program})
    add_custom_command(OUTPUT ${page} COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/pages/${form}
      COMMAND option_pages ${form} ${program} > ${page} DEPENDS option_pages VERBATIM)
    list(APPEND pages ${page})
  endforeach()
  install(FILES ${CMAKE_BINARY_DIR}/pages/man/${program} RENAME ${program}.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT visac)
  install(FILES ${CMAKE_BINARY_DIR}/pages/bash/${program}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT visac)
  install(FILES ${CMAKE_BINARY_DIR}/pages/zsh/${program} RENAME _${program}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT visac)
  install(FILES ${CMAKE_BINARY_DIR}/pages/fish/${program} RENAME ${program}.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT visac)
endforeach()
add_custom_target(option_pages_all ALL DEPENDS ${pages})

set(components visac library reference development)
if(TARGET visa_mpi)
  list(APPEND components mpi)
endif()
foreach(component ${components})
  set(package_visac visac)
  set(package_library libvisa0)
  set(package_reference libvisa-reference)
  set(package_development libvisa-dev)
  set(package_mpi libvisa-mpi)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE RENAME copyright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package_${component}} COMPONENT ${component})
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/visac COMPONENT visac)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/visac COMPONENT visac
  PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)

set(CPACK_PACKAGE_NAME visac)
set(CPACK_PACKAGE_CONTACT "The visac maintainers <maintainers@visac.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${CMAKE_PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_VISAC_PACKAGE_NAME visac)
set(CPACK_DEBIAN_VISAC_PACKAGE_RECOMMENDS "libvisa-reference (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_VISAC_PACKAGE_SUGGESTS "libvisa-mpi (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_VISAC_DESCRIPTION "compiler of tensor mappings, simulated machine and language server")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libvisa0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "compiler of tensor mappings, as a C library")
set(CPACK_DEBIAN_REFERENCE_PACKAGE_NAME libvisa-reference)
set(CPACK_DEBIAN_REFERENCE_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_REFERENCE_DESCRIPTION "reference kernels for visac --check, built with LLVM")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libvisa-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libvisa0 (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "compiler of tensor mappings: headers, pkg-config and CMake files")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME libvisa-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_MPI_DESCRIPTION "searches of visac in several processes, under mpirun")
set(CPACK_GENERATOR DEB)
include(CPack)
