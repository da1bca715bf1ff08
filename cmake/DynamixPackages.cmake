# cpack -G DEB: one Debian package per install component (DynamixInstall.cmake, python/CMakeLists.txt).
# What programs and libraries need is found by dpkg-shlibdeps; what they use without linking it, and
# what static libraries need, is named here. docs/packages.md says how to make and use them.
#
# component | package
# dynamix   | dynamix              programs, data, arbitrator as a service, documents
# client    | libdynamix-client1   the shared library behind dynamix.h
# dev       | libdynamix-dev       headers, static rooms, find_package(dynamix)
# python    | python3-dynamix      the Python package
set(DYNAMIX_MAINTAINER "DYNAMIX developers <dynamix@packages.invalid>" CACHE STRING
    "Maintainer of the Debian packages: Name <address>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dynamix)
set(CPACK_PACKAGE_VENDOR DYNAMIX)
set(CPACK_PACKAGE_CONTACT "${DYNAMIX_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

# dynamix_package(COMPONENT PACKAGE SUMMARY TEXT): a package, with the two files that each one has.
function(dynamix_package component package summary text)
  string(TOUPPER ${component} name)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  install(FILES packaging/debian/copyright ${PROJECT_BINARY_DIR}/packaging/changelog.Debian.gz
          DESTINATION share/doc/${package} COMPONENT ${component})
endfunction()

configure_file(packaging/debian/changelog.in packaging/changelog.Debian @ONLY)
execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/packaging/changelog.Debian
                COMMAND_ERROR_IS_FATAL ANY)
set(CPACK_COMPONENTS_ALL)

dynamix_package(dynamix dynamix "learned batch sizes for distributed training"
"DYNAMIX chooses each worker's batch size while a distributed training job
runs, from what it measures of the network, the machines and the training.
.
This package has the command dynamix (compare, train, launch, arbitrator,
monitor, learn and more), the shipped policy, scenarios and workloads, and
the arbitrator as a service of systemd, which runs only when enabled.")
set(CPACK_DEBIAN_DYNAMIX_PACKAGE_RECOMMENDS
    "dataset-fashion-mnist, iproute2, iptables, libopenblas0-pthread | libblas.so.3, openssl")
set(CPACK_DEBIAN_DYNAMIX_PACKAGE_SUGGESTS "nodejs, npm, python3-dynamix")
set(CPACK_DEBIAN_DYNAMIX_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/dynamix/postinst
    ${PROJECT_SOURCE_DIR}/packaging/debian/dynamix/prerm
    ${PROJECT_SOURCE_DIR}/packaging/debian/dynamix/postrm)

dynamix_package(client libdynamix-client1 "learned batch sizes for distributed training (C library)"
"The worker's side of DYNAMIX for programs in C and other languages: they ask
an arbitrator for their batch size.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/libdynamix-client1/triggers)

dynamix_package(dev libdynamix-dev "learned batch sizes for distributed training (development)"
"Headers, static libraries and the CMake package: find_package(dynamix) and
target_link_libraries(... dynamix::policies) are all a program in C++ needs.
.
The components rpc and training need gRPC and libtorch, which are recommended.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DEPENDS client)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libbpf-dev, libssl-dev, libtomlplusplus-dev, nlohmann-json3-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "cmake, libcpp-httplib-dev, libgloo-dev, libgrpc++-dev, \
libprotobuf-dev, libtorch-dev, pkg-config, prometheus-cpp-dev, protobuf-compiler-grpc")

if(TARGET dynamix_python)
  dynamix_package(python python3-dynamix "learned batch sizes for PyTorch's DDP"
"Two lines make a DistributedDataParallel script adaptive: each rank's batch
size follows what DYNAMIX measures of the network, the machines and the
training, with exact gradients and every sample once per epoch.")
  get_property(python GLOBAL PROPERTY DYNAMIX_PYTHON_VERSION)
  string(REGEX REPLACE "^([0-9]+)\\." "\\1;" next ${python})
  list(GET next 1 minor)
  math(EXPR minor "${minor} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_COMPONENT_PYTHON_DEPENDS dynamix)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
      "python3 (>= ${python}~), python3 (<< 3.${minor}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-torch)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-pandas)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
      ${PROJECT_SOURCE_DIR}/packaging/debian/python3-dynamix/postinst
      ${PROJECT_SOURCE_DIR}/packaging/debian/python3-dynamix/prerm)
endif()

include(CPack)
