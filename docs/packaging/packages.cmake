# SPDX-License-Identifier: Apache-2.0
# Packages: what cpack makes of a build.
#
#   cmake -S . -B build-deb -DCMAKE_INSTALL_PREFIX=/usr -DSTOUP_TESTS=OFF -DSTOUP_BENCH=OFF
#   cmake --build build-deb
#   (cd build-deb && cpack -G DEB)                                  # on the Debian they are for
#   (cd build-deb && cpack --config CPackSourceConfig.cmake -G TGZ) # the source tarball, from a git checkout
#
#   component    package             has
#   programs     stoup               stoup, stoupd, their pages, completion for bash, the documents, the service
#   runtime      libstoupN           libstoup.so.N, N = the SOVERSION
#   development  libstoup-dev        headers, libstoup.so, libstoup.a, pkg-config, CMake, pages of section 3
#   python       python3-stoup       stoup.py
#
# The prefix is told when the build is configured, not to cpack: Debian's library folder and the place of stoupd
# follow from it, and the library carries the latter. What Debian wants of the files beyond `cmake --install`
# (packed pages, no symbols) is done by finish.cmake between the two.
set(STOUP_MAINTAINER "The stoup maintainers <stoup@packages.invalid>" CACHE STRING
  "Name and address that the packages carry")
set(STOUP_PACKAGING_DIR ${CMAKE_CURRENT_LIST_DIR})
set(STOUP_DEB_RELEASE 1)

# ---- all generators ---------------------------------------------------------------------------
set(CPACK_PACKAGE_NAME stoup)
set(CPACK_PACKAGE_VENDOR stoup)
set(CPACK_PACKAGE_CONTACT "${STOUP_MAINTAINER}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/packages-config.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${STOUP_PACKAGING_DIR}/finish.cmake)
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME stoup-${PROJECT_VERSION})
set(CPACK_GENERATOR TGZ)
set(CPACK_COMPONENTS_ALL runtime development)
if(STOUP_DAEMON)
  list(APPEND CPACK_COMPONENTS_ALL programs)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/consumer/python/stoup.py)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()

# ---- Debian -----------------------------------------------------------------------------------
set(STOUP_DEB_LIBRARY libstoup${STOUP_SOVERSION})
set(STOUP_DEB_VERSION ${PROJECT_VERSION}-${STOUP_DEB_RELEASE})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE stoup)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${STOUP_DEB_RELEASE})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(STOUP_ABOUT "A producer daemon decompresses segments of market data into shared
memory once, and the processes of the machine read those very bytes: a
pointer to C structs, no copy, no parsing, leases that a killed process
gives back.")

# stoup_package(COMPONENT NAME SECTION SUMMARY TEXT)
macro(stoup_package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${STOUP_ABOUT}\n\n${text}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${CPACK_COMPONENT_${upper}_DESCRIPTION}")
  foreach(file copyright changelog.Debian.gz)
    install(FILES ${PROJECT_BINARY_DIR}/packages/${file} DESTINATION share/doc/${name}
      COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
endmacro()

stoup_package(programs stoup utils "shared-memory cache of market data - daemon and tools"
  "This package has stoupd, the daemon, and stoup, which ingests DBN and
CSV files and shows what is in a store and a pool.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "bash-completion, systemd")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA
  "${STOUP_PACKAGING_DIR}/systemd/postinst;${STOUP_PACKAGING_DIR}/systemd/postrm")

stoup_package(runtime ${STOUP_DEB_LIBRARY} libs "shared-memory cache of market data - library"
  "This package has the library by which programs attach and read.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "stoup (= ${STOUP_DEB_VERSION})")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
  "${PROJECT_BINARY_DIR}/packages/symbols;${PROJECT_BINARY_DIR}/packages/shlibs;\
${STOUP_PACKAGING_DIR}/triggers")

stoup_package(development libstoup-dev libdevel "shared-memory cache of market data - headers"
  "This package has the headers for C and C++, and what pkg-config and
CMake ask for.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${STOUP_DEB_LIBRARY} (= ${STOUP_DEB_VERSION})")

stoup_package(python python3-stoup python "shared-memory cache of market data - Python module"
  "This package has stoup.py, which hands records to NumPy where that is
installed.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${STOUP_DEB_LIBRARY} (>= ${PROJECT_VERSION}), python3 (>= 3.9)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
  "${STOUP_PACKAGING_DIR}/python/postinst;${STOUP_PACKAGING_DIR}/python/prerm")
if(STOUP_DAEMON)
  file(GLOB STOUP_DOCUMENTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
  list(REMOVE_ITEM STOUP_DOCUMENTS ${PROJECT_SOURCE_DIR}/docs/CHANGELOG.md)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${STOUP_DOCUMENTS} DESTINATION share/doc/stoup
    COMPONENT programs EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/CHANGELOG.md DESTINATION share/doc/stoup
    RENAME changelog COMPONENT programs EXCLUDE_FROM_ALL)
  # bash-completion finds the file by the name of the command.
  foreach(command stoup stoupd)
    install(FILES ${PROJECT_SOURCE_DIR}/docs/completion/stoup.bash
      DESTINATION share/bash-completion/completions RENAME ${command} COMPONENT programs)
  endforeach()
endif()

# ---- files that are made -------------------------------------------------------------------------
configure_file(${STOUP_PACKAGING_DIR}/copyright ${PROJECT_BINARY_DIR}/packages/copyright COPYONLY)
configure_file(${STOUP_PACKAGING_DIR}/changelog.in ${PROJECT_BINARY_DIR}/packages/changelog @ONLY)
find_program(STOUP_GZIP gzip)
if(STOUP_GZIP)
  execute_process(COMMAND ${STOUP_GZIP} -9nc ${PROJECT_BINARY_DIR}/packages/changelog
    OUTPUT_FILE ${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz)
endif()
# Which version of the package a program needs follows from the symbols that it uses.
set(symbols "libstoup.so.${STOUP_SOVERSION} ${STOUP_DEB_LIBRARY} #MINVER#\n")
string(APPEND symbols " STOUP_${STOUP_SOVERSION}@STOUP_${STOUP_SOVERSION} 0.1.0\n")
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/golden/abi-symbols.txt lines REGEX "^[a-z]")
foreach(line IN LISTS lines)
  string(REPLACE "@@" "@" line "${line}")
  string(APPEND symbols " ${line} 0.1.0\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packages/symbols CONTENT "${symbols}" @ONLY)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packages/shlibs
  CONTENT "libstoup ${STOUP_SOVERSION} ${STOUP_DEB_LIBRARY} (>= 0.1.0)\n" @ONLY)
configure_file(${STOUP_PACKAGING_DIR}/config.cmake.in ${CPACK_PROJECT_CONFIG_FILE} @ONLY)

include(CPack)
