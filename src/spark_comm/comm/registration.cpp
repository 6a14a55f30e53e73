// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/detail/registry.hpp>
#include <spark_comm/comm/registration.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/abi.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace spark_comm {
namespace detail {

registry_entry::registry_entry(std::shared_ptr<registry> where,
                               std::uint64_t which,
                               const memory_range& range)
    : where_(std::move(where)), which_(which), address_(range.address), bytes_(range.bytes) {}

registry_entry::registry_entry(registry_entry&& other) noexcept = default;

registry_entry& registry_entry::operator=(registry_entry&& other) noexcept {
  if (this != &other) {
    if (where_ != nullptr) {
      where_->discard(which_, {});
    }
    where_ = std::move(other.where_);
    which_ = other.which_;
    address_ = other.address_;
    bytes_ = other.bytes_;
  }
  return *this;
}

registry_entry::~registry_entry() {
  if (where_ != nullptr) {
    where_->discard(which_, {});
  }
}

void* registry_entry::handle() const {
  return where_ == nullptr ? nullptr : where_->find(which_).handle;
}

bool registry_entry::is_current() const {
  return where_ != nullptr && where_->find(which_).generation != 0;
}

void registry_entry::release() {
  if (where_ != nullptr) {
    where_->remove(which_);
  }
}

}  // namespace detail

nccl::abi::window window::native() const {
  if (!entry_.is_current()) {
    throw error{errc::invalid_usage,
                "the window is not of a communicator that is ready: it was released, or the "
                "communicator has to reconnect"};
  }
  return static_cast<nccl::abi::window>(entry_.handle());
}

}  // namespace spark_comm
