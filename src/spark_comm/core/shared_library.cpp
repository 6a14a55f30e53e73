// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/shared_library.hpp>

#include <dlfcn.h>
#include <string>
#include <utility>

namespace spark_comm {

shared_library shared_library::open(const std::string& name) {
  // NODELETE: the code must stay mapped even if somebody else closes the same library.
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc
    throw error{errc::not_supported,
                "cannot load " + name + ": " + (reason == nullptr ? "no reason given" : reason)};
  }
  return {handle, name};
}

shared_library::shared_library(void* handle, std::string name)
    : handle_(handle), name_(std::move(name)) {}

void* shared_library::find(const char* symbol) const noexcept {
  return dlsym(handle_, symbol);
}

std::string shared_library::file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  return info.dli_fname;
}

}  // namespace spark_comm
