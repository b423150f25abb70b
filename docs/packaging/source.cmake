# SPDX-License-Identifier: Apache-2.0
# Run by cpack: puts the files that git knows into the tree that is packed.
get_filename_component(source ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
execute_process(COMMAND git -c safe.directory=${source} -C ${source} -c core.quotePath=false ls-files
  OUTPUT_VARIABLE listed RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 0 OR NOT EXISTS ${source}/.git)
  message(FATAL_ERROR "the source tarball is made from a git checkout, which ${source} is not: ${said}")
endif()
string(REGEX REPLACE "\n$" "" listed "${listed}")
string(REPLACE ";" "\\;" listed "${listed}")
string(REPLACE "\n" ";" listed "${listed}")
foreach(file IN LISTS listed)
  get_filename_component(folder ${file} DIRECTORY)
  if(EXISTS ${source}/${file})
    file(COPY ${source}/${file} DESTINATION ${CMAKE_INSTALL_PREFIX}/${folder})
  endif()
endforeach()
