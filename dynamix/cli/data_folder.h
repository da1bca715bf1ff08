// Where the shipped data is: scenarios/, workloads/, policies/. The first of: the environment
// variable DYNAMIX_DATA, a folder above the program (or the Python module) that holds them (a source
// tree), PREFIX/share/dynamix.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

// Throws InputError when none of the three has them.
std::string DataFolder();

// Where the Fashion-MNIST files are: DYNAMIX_FASHION_MNIST, else the Debian package's folder.
std::string FashionMnistFolder();

// Where a data set usually is: fashion_mnist as FashionMnistFolder says, others in
// $DYNAMIX_DATASETS/NAME or ~/.cache/dynamix/NAME.
std::string DatasetFolder(const std::string& dataset);

// The stems of all files in FOLDER of the data folder and the folders in it ("demo/lenet_fashion"),
// sorted.
std::vector<std::string> ShippedNames(const std::string& folder, const std::string& suffix);

// A path as the user wrote it, or the file of that stem in FOLDER of the data folder ("default" ->
// policies/default.safetensors, "demo/lenet_fashion" -> workloads/demo/lenet_fashion.toml).
// Throws InputError naming `what`, the value and the choices: the files there, and `other_choices`,
// which the caller knows without a file.
std::string FindData(const std::string& what, const std::string& value, const std::string& folder,
                     const std::string& suffix, const std::vector<std::string>& other_choices = {});

// Of a workload, by FindData.
std::string FindWorkloadFile(const std::string& what, const std::string& value);

}  // namespace dynamix
