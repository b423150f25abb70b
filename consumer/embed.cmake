# SPDX-License-Identifier: Apache-2.0
# embed.cmake - a file as a C array: cmake -DIN=FILE -DOUT=HEADER -DNAME=SYMBOL -P embed.cmake
file(READ "${IN}" bytes HEX)
string(LENGTH "${bytes}" len)
math(EXPR len "${len} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "static const unsigned char ${NAME}[${len}] = {\n${bytes}\n};\n")
