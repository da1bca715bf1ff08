#include "dynamix/training/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/job/catalogue.h"
#include "dynamix/simulator/idx_file.h"
#include "dynamix/training/cifar_file.h"
#include "dynamix/training/text_data.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;

// Images whose predictions are worth a sequence's.
constexpr int kImagesPerSequence = 16;

// A text this project knows, with the checksum of the file that scripts/fetch-text makes.
struct TextSource {
  std::string_view name, sha256;
  int training_samples;
};
constexpr std::array<TextSource, 2> kTexts = {
    {{"bible", "b5c4940bcfeee072c0935b5200d0f9d88a00a0199cb0961d16133458fcdfae5d", 58188},
     {"moby", "fe282a57094ed62e7144fb7c804a9748fc1c909bf3b49d06e7276015f9f67240", 16945}}};

const TextSource* FindText(std::string_view name) {
  const auto found = std::find_if(kTexts.begin(), kTexts.end(),
                                  [name](const TextSource& text) { return text.name == name; });
  return found == kTexts.end() ? nullptr : &*found;
}

// How to get a data set, for errors.
std::string Remedy(std::string_view name) {
  for (const KnownDataset& dataset : KnownDatasets())
    if (dataset.name == name) return std::string(dataset.remedy);
  return "";
}

// The first of the usual spellings that exists.
fs::path FindIdx(const fs::path& folder, const std::string& stem, const std::string& kind) {
  for (const std::string& name : {stem + "-" + kind + ".gz", stem + "-" + kind,
                                  stem + "." + kind + ".gz", stem + "." + kind}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return folder / (stem + "-" + kind + ".gz");
}

SampleSet ReadIdxSet(const fs::path& folder, const std::string& prefix, const SampleShape& shape) {
  const fs::path image_path = FindIdx(folder, prefix + "-images", "idx3-ubyte");
  const fs::path label_path = FindIdx(folder, prefix + "-labels", "idx1-ubyte");
  IdxArray images = ReadIdxFile(image_path, 3, kLargestFile);
  IdxArray labels = ReadIdxFile(label_path, 1, kLargestFile);
  if (images.sizes[1] != shape.height || images.sizes[2] != shape.width) {
    throw InputError("cannot use " + image_path.string() + ": its images are " +
                     std::to_string(images.sizes[1]) + " x " + std::to_string(images.sizes[2]) +
                     ", expected " + std::to_string(shape.height) + " x " +
                     std::to_string(shape.width));
  }
  if (images.sizes[0] != labels.sizes[0]) {
    throw InputError("cannot use " + label_path.string() + ": it has " +
                     std::to_string(labels.sizes[0]) + " labels for " +
                     std::to_string(images.sizes[0]) + " images");
  }
  const auto worst = std::max_element(labels.data.begin(), labels.data.end());
  if (*worst > 9) {
    throw InputError("cannot use " + label_path.string() + ": it has the label " +
                     std::to_string(*worst) + ", expected 0 to 9");
  }
  return {std::move(images.data), std::move(labels.data)};
}

void ReadIdx(Dataset& data, const fs::path& folder) {
  data.shape = {1, 28, 28};
  data.training = ReadIdxSet(folder, "train", data.shape);
  data.held_out = ReadIdxSet(folder, "t10k", data.shape);
}

void ReadCifar(Dataset& data, fs::path folder) {
  const CifarKind kind = data.name == "cifar10" ? CifarKind::kCifar10 : CifarKind::kCifar100;
  const fs::path inner = kind == CifarKind::kCifar10 ? "cifar-10-batches-bin" : "cifar-100-binary";
  if (fs::exists(folder / inner)) folder /= inner;
  data.shape = {3, 32, 32};
  data.classes = kind == CifarKind::kCifar10 ? 10 : 100;
  for (const CifarFile& file : CifarFiles(kind)) {
    SampleSet& set = file.held_out ? data.held_out : data.training;
    AppendCifarFile(folder / file.name, kind, file.images, set);
  }
}

void ReadText(Dataset& data, const TextSource& text, const fs::path& folder) {
  SetText(data, ReadTextData(folder / (data.name + ".txt"), text.sha256));
}

void MeasureChannels(Dataset& data) {
  const std::size_t plane = static_cast<std::size_t>(data.shape.height) * data.shape.width;
  for (int channel = 0; channel < data.shape.channels; ++channel) {
    double sum = 0, squares = 0;
    for (int i = 0; i < data.training.count(); ++i) {
      const std::uint8_t* pixel =
          data.training.inputs.data() + i * data.shape.size() + channel * plane;
      std::int64_t image_sum = 0, image_squares = 0;
      for (std::size_t p = 0; p < plane; ++p) {
        image_sum += pixel[p];
        image_squares += std::int64_t{pixel[p]} * pixel[p];
      }
      sum += static_cast<double>(image_sum);
      squares += static_cast<double>(image_squares);
    }
    const double count = static_cast<double>(plane) * data.training.count();
    const double mean = sum / count;
    data.mean.push_back(static_cast<float>(mean / 255));
    const double variance = std::max(1.0, squares / count - mean * mean);
    data.deviation.push_back(static_cast<float>(std::sqrt(variance) / 255));
  }
}

}  // namespace

std::vector<std::string> DatasetNames() {
  std::vector<std::string> names;
  for (const KnownDataset& dataset : KnownDatasets()) names.emplace_back(dataset.name);
  return names;
}

void RequireDatasetName(std::string_view name) {
  std::string choices;
  for (const std::string& known : DatasetNames()) {
    if (known == name) return;
    choices += (choices.empty() ? "one of " : ", ") + known;
  }
  throw InputError::OutOfRange("dataset", name, choices);
}

int TrainingSamples(std::string_view name) {
  RequireDatasetName(name);
  if (const TextSource* text = FindText(name)) return text->training_samples;
  return name.starts_with("cifar") ? 50000 : 60000;
}

int HeldOutSamples(const Dataset& data, int asked, int images) {
  const int usual = data.shape.is_text() ? images / kImagesPerSequence : images;
  return std::min(asked > 0 ? asked : usual, data.held_out.count());
}

Dataset LoadDataset(std::string_view name, const fs::path& folder) {
  RequireDatasetName(name);
  Dataset data;
  data.name = name;
  try {
    if (name == "fashion_mnist" || name == "mnist") {
      ReadIdx(data, folder);
      MeasureChannels(data);
    } else if (const TextSource* text = FindText(name)) {
      ReadText(data, *text, folder);
    } else {
      ReadCifar(data, folder);
      MeasureChannels(data);
    }
  } catch (const InputError& error) {
    throw InputError(std::string(error.what()) + "; to get " + data.name + ", " + Remedy(name));
  }
  return data;
}

}  // namespace dynamix
