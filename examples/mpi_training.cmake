# The C example with MPI: built and run when MPI is here.
enable_language(C)
find_package(MPI COMPONENTS C)
if(MPI_C_FOUND)
  add_executable(mpi_training ${CMAKE_CURRENT_LIST_DIR}/mpi_training.c)
  target_compile_definitions(mpi_training PRIVATE _DEFAULT_SOURCE)
  target_compile_features(mpi_training PRIVATE c_std_11)
  target_link_libraries(mpi_training PRIVATE dynamix::client MPI::MPI_C m)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME example.mpi_training
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/mpi_training_test.py
                   $<TARGET_FILE:dynamix> $<TARGET_FILE:mpi_training> ${PROJECT_SOURCE_DIR})
  set_tests_properties(example.mpi_training PROPERTIES TIMEOUT 180 LABELS job SKIP_RETURN_CODE 77)
endif()
