# SPDX-License-Identifier: Apache-2.0
# Toolchain for arm64 on another machine: Debian's cross compiler, and programs run by user-mode QEMU.
# tests/arm64.sh uses it.
#
#   STOUP_ARM64_ROOT      directory whose usr/ has the core's libraries for arm64, unpacked; libc's
#                         headers come with the compiler. Empty: no libraries but libc
#   STOUP_ARM64_EMULATOR  what runs an arm64 program, a list: qemu-aarch64;-L;ROOT
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STOUP_ARM64_ROOT STOUP_ARM64_EMULATOR)
set(CMAKE_CROSSCOMPILING_EMULATOR ${STOUP_ARM64_EMULATOR})

set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${STOUP_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Never the libraries of the machine that builds.
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${STOUP_ARM64_ROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
  "${STOUP_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${STOUP_ARM64_ROOT}/usr/share/pkgconfig")
# pkg-config leaves out what a compiler looks through anyway; a cross compiler does not look there.
set(ENV{PKG_CONFIG_ALLOW_SYSTEM_CFLAGS} 1)
set(ENV{PKG_CONFIG_ALLOW_SYSTEM_LIBS} 1)
if(STOUP_ARM64_ROOT)
  # Libraries that other libraries need.
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${STOUP_ARM64_ROOT}/usr/lib/aarch64-linux-gnu:\
${STOUP_ARM64_ROOT}/lib/aarch64-linux-gnu")
endif()
