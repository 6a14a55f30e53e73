// SPDX-License-Identifier: AGPL-3.0-only
// All host equivalents under the names of the device kernels. Variants that differ in speed only
// are one function here.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/detail/host_image.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/kernels/detail/parameters.hpp>
#include <spark_comm/kernels/host/kernels.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace spark_comm::kernels::detail {
namespace {

constexpr std::uint32_t add_bytes = sizeof(add_parameters);
constexpr std::uint32_t rms_norm_bytes = sizeof(rms_norm_parameters);
constexpr std::uint32_t all_reduce_bytes = sizeof(all_reduce_parameters);
constexpr std::uint32_t all_reduce_rms_norm_bytes = sizeof(all_reduce_rms_norm_parameters);

template <typename T>
host_kernel_entry entry_for(kernel_family family) {
  switch (family) {
    case kernel_family::add: return {"", &host::add<T>, &add_bytes, 1, host_kernel_never_waits};
    case kernel_family::rms_norm:
      return {"", &host::rms_norm<T>, &rms_norm_bytes, 1, host_kernel_never_waits};
    case kernel_family::one_shot:
      return {"", &host::one_shot<T>, &all_reduce_bytes, 1, host_kernel_may_wait};
    case kernel_family::one_shot_rms_norm:
      return {"", &host::one_shot_rms_norm<T>, &all_reduce_rms_norm_bytes, 1, host_kernel_may_wait};
    case kernel_family::two_shot:
      return {"", &host::two_shot<T>, &all_reduce_bytes, 1, host_kernel_may_wait};
    case kernel_family::low_latency:
      return {"", &host::low_latency<T>, &all_reduce_bytes, 1, host_kernel_may_wait};
  }
  return {};
}

host_kernel_entry entry_for(const kernel_key& key) {
  if (key.dtype == data_type::float32) {
    return entry_for<float>(key.family);
  }
  return key.dtype == data_type::float16 ? entry_for<float16>(key.family)
                                         : entry_for<bfloat16>(key.family);
}

// Owns what the image points to.
struct image_storage {
  std::deque<std::string> names;  // a deque, because its elements stay where they are
  std::vector<host_kernel_entry> entries;
  host_module_image image{};
};

}  // namespace

std::shared_ptr<const host_module_image> make_host_image() {
  const auto storage = std::make_shared<image_storage>();
  for (const kernel_family family : all_kernel_families) {
    for (const kernel_key& key : keys_of(family)) {
      host_kernel_entry entry = entry_for(key);
      entry.name = storage->names.emplace_back(name_of(key)).c_str();
      storage->entries.push_back(entry);
    }
  }
  storage->image = {.magic = host_module_magic,
                    .count = storage->entries.size(),
                    .entries = storage->entries.data()};
  return {storage, &storage->image};
}

}  // namespace spark_comm::kernels::detail
