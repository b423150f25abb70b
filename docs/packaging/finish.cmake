# SPDX-License-Identifier: Apache-2.0
# Run by cpack between installing and packing: what Debian wants beyond `cmake --install`.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root ${CPACK_TEMPORARY_DIRECTORY})

# Manual pages, and texts of more than 4 KiB, are packed.
file(GLOB_RECURSE pages ${root}/*/usr/share/man/*.[1-8] ${root}/*/usr/share/doc/*.md
  ${root}/*/usr/share/doc/*/changelog)
foreach(page IN LISTS pages)
  file(SIZE ${page} len)
  if(page MATCHES "/man/|/changelog$" OR len GREATER 4096)
    execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()

# Objects without what only a debugger reads.
file(GLOB libraries ${root}/*/usr/lib/*/libstoup.so.* ${root}/*/usr/bin/*)
foreach(object IN LISTS libraries)
  if(NOT IS_SYMLINK ${object})
    execute_process(COMMAND strip --strip-unneeded --remove-section=.comment --remove-section=.note ${object}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
file(GLOB archives ${root}/*/usr/lib/*/libstoup.a)
foreach(object IN LISTS archives)
  execute_process(COMMAND strip --strip-debug --enable-deterministic-archives ${object} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
