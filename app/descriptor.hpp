// SPDX-License-Identifier: AGPL-3.0-only
// An owned file descriptor.
#pragma once

#include <unistd.h>
#include <utility>

namespace spark_comm::app {

class descriptor {
 public:
  descriptor() noexcept = default;

  explicit descriptor(int number) noexcept : number_(number) {}

  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

  descriptor& operator=(descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }

  ~descriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return number_; }

  explicit operator bool() const noexcept { return number_ >= 0; }

  void reset() noexcept {
    if (number_ >= 0) {
      ::close(std::exchange(number_, -1));
    }
  }

 private:
  int number_ = -1;
};

}  // namespace spark_comm::app
