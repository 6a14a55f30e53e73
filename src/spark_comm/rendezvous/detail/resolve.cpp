// SPDX-License-Identifier: AGPL-3.0-only
// Names to endpoints, with a deadline that the system's resolver does not have.
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/socket.hpp>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace spark_comm::rendezvous::detail {
namespace {

/// Shared with the helper thread, which may outlive the caller.
struct look_up {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<resolution> answer;
};

struct free_list {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

resolution ask_system(const address& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const std::string port = std::to_string(where.port);
  const int failure = ::getaddrinfo(where.host.c_str(), port.c_str(), &hints, &raw);
  const std::unique_ptr<addrinfo, free_list> list{raw};
  resolution out;
  if (failure != 0) {
    out.failure = where.host + ": " + ::gai_strerror(failure);
    return out;
  }
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    tcp::endpoint endpoint;
    if (each->ai_addrlen <= endpoint.capacity()) {
      std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
      endpoint.resize(each->ai_addrlen);
      out.endpoints.push_back(endpoint);
    }
  }
  if (out.endpoints.empty()) {
    out.failure = where.host + ": no usable address";
  }
  return out;
}

}  // namespace

resolution resolve(const address& where, const deadline& until) {
  resolution numeric = ask_system(where, AI_NUMERICHOST);
  if (numeric.failure.empty()) {
    return numeric;
  }
  auto shared = std::make_shared<look_up>();
  std::thread{[shared, where] {
    resolution answer = ask_system(where, 0);
    const std::scoped_lock lock{shared->mutex};
    shared->answer = std::move(answer);
    shared->changed.notify_all();
  }}.detach();
  std::unique_lock lock{shared->mutex};
  const bool is_answered =
      shared->changed.wait_for(lock, until.remaining(), [&] { return shared->answer.has_value(); });
  if (!is_answered) {
    return {.endpoints = {}, .failure = where.host + ": the name server did not answer in time"};
  }
  return std::move(*shared->answer);
}

}  // namespace spark_comm::rendezvous::detail
