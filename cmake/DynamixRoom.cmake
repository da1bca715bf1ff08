# One target per room, `dynamix::<room>`, with the unit tests that sit beside its files.
#
#   dynamix_room(NAME SOURCES a.cc b.cc [DEPENDS dynamix::core ...] [PRIVATE_DEPENDS ...])
#   dynamix_room_test(NAME [INCLUDES_TORCH] SOURCES a_test.cc [DEPENDS ...])
#   dynamix_fuzzer(NAME SOURCES x_fuzz.cc DEPENDS ...)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH DYNAMIX_ROOT)
find_program(DYNAMIX_CCACHE ccache)
if(DYNAMIX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the first ccache keeps nothing that was compiled with a precompiled header; with the second
  # one clone of the project finds what another has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${DYNAMIX_ROOT}
      ${DYNAMIX_CCACHE})
endif()

# Flags of this project only: nothing here reaches a consumer of the installed package.
add_library(dynamix_flags INTERFACE)
target_compile_options(dynamix_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
                       -Wno-missing-field-initializers)  # designated initialisers mean the rest
# Messages name files as the project does, and no file depends on the folder it was compiled in: with
# __FILE__ in every check, ccache would keep nothing for another clone.
target_compile_options(dynamix_flags INTERFACE -ffile-prefix-map=${DYNAMIX_ROOT}=.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(dynamix_flags INTERFACE -Wno-restrict)  # GCC bug 105651: false alarms on std::string
endif()
if(DYNAMIX_WARNINGS_AS_ERRORS)
  target_compile_options(dynamix_flags INTERFACE -Werror)
endif()
if(DYNAMIX_SANITIZER)
  target_compile_options(dynamix_flags INTERFACE
    -fsanitize=${DYNAMIX_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dynamix_flags INTERFACE -fsanitize=${DYNAMIX_SANITIZER})
endif()

function(dynamix_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(dynamix_${name} STATIC ${ROOM_SOURCES})
  add_library(dynamix::${name} ALIAS dynamix_${name})
  set_target_properties(dynamix_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(dynamix_${name} PUBLIC cxx_std_20)
  target_include_directories(dynamix_${name} PUBLIC
    $<BUILD_INTERFACE:${DYNAMIX_ROOT}> $<INSTALL_INTERFACE:include>)
  target_link_libraries(dynamix_${name} PUBLIC ${ROOM_DEPENDS}
    PRIVATE ${ROOM_PRIVATE_DEPENDS} $<BUILD_INTERFACE:dynamix_flags>)
  set_property(GLOBAL APPEND PROPERTY DYNAMIX_ROOMS ${name})
endfunction()

# Files that a unity build must not join with others: their objects are replaced by those that tests
# compile with failpoints, or their names are those of a library.
macro(dynamix_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endmacro()

# Compiled once, run once; -pthread because some rooms bring it along, and precompiled headers want
# the same flags everywhere.
set(DYNAMIX_TEST_OPTIONS -O1 -pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms on std::string from a precompiled header.
  list(APPEND DYNAMIX_TEST_OPTIONS -Wno-array-bounds -Wno-stringop-overflow)
endif()

# What every test includes, read once.
function(dynamix_test_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "")
  add_library(dynamix_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
  target_compile_features(dynamix_test_headers PRIVATE cxx_std_20)
  target_link_libraries(dynamix_test_headers PRIVATE dynamix_flags GTest::gmock)
  target_compile_options(dynamix_test_headers PRIVATE ${DYNAMIX_TEST_OPTIONS})
  target_precompile_headers(dynamix_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <filesystem>
                            <fstream> <functional> <map> <optional> <regex> <thread>)
endfunction()

function(dynamix_room_test name)
  if(NOT DYNAMIX_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ROOM "INCLUDES_TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name}_test ${ROOM_SOURCES})
  if(NOT TARGET dynamix_test_headers)
    dynamix_test_headers()
  endif()
  target_link_libraries(${name}_test PRIVATE ${ROOM_DEPENDS} dynamix_flags GTest::gmock
                                             GTest::gtest_main)
  target_compile_options(${name}_test PRIVATE ${DYNAMIX_TEST_OPTIONS})
  if(NOT ROOM_INCLUDES_TORCH)  # whose macros the headers would have to be read with
    target_precompile_headers(${name}_test REUSE_FROM dynamix_test_headers)
  endif()
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 300)
endfunction()

function(dynamix_fuzzer name)
  if(NOT DYNAMIX_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ROOM_SOURCES})
  target_link_libraries(${name} PRIVATE ${ROOM_DEPENDS} dynamix_flags)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
endfunction()
