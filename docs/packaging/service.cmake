# SPDX-License-Identifier: Apache-2.0
# The service: stoupd@.service for systemd, its user and group (sysusers.d), its directory (tmpfiles.d); files for
# containers among the documents. They lie below the prefix, where systemd looks for /usr and /usr/local.
set(STOUP_UNIT_DIR lib/systemd/system CACHE STRING "Where the unit of systemd is installed")
set(STOUP_SYSUSERS_DIR lib/sysusers.d CACHE STRING "Where the daemon's user is declared")
set(STOUP_TMPFILES_DIR lib/tmpfiles.d CACHE STRING "Where the sockets' directory is declared")
configure_file(${CMAKE_CURRENT_LIST_DIR}/systemd/stoupd@.service.in
  ${PROJECT_BINARY_DIR}/packages/stoupd@.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packages/stoupd@.service DESTINATION ${STOUP_UNIT_DIR} COMPONENT programs)
configure_file(${CMAKE_CURRENT_LIST_DIR}/systemd/stoup-exporter.service.in
  ${PROJECT_BINARY_DIR}/packages/stoup-exporter.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packages/stoup-exporter.service DESTINATION ${STOUP_UNIT_DIR} COMPONENT programs)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/prometheus/prometheus.yml ${CMAKE_CURRENT_LIST_DIR}/prometheus/stoup.rules.yml
  ${CMAKE_CURRENT_LIST_DIR}/prometheus/stoup.rules.test.yml
  DESTINATION share/doc/stoup/prometheus COMPONENT programs)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/systemd/sysusers.conf DESTINATION ${STOUP_SYSUSERS_DIR}
  RENAME stoup.conf COMPONENT programs)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/systemd/tmpfiles.conf DESTINATION ${STOUP_TMPFILES_DIR}
  RENAME stoup.conf COMPONENT programs)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/container/Containerfile ${CMAKE_CURRENT_LIST_DIR}/container/compose.yaml
  ${CMAKE_CURRENT_LIST_DIR}/container/seccomp.json
  DESTINATION share/doc/stoup/container COMPONENT programs)
