// SPDX-License-Identifier: AGPL-3.0-only
// Two hosts, played by two network namespaces that a cable joins. Needs the right to make them.
#pragma once

#include "process/children.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace spark_comm::testing {

inline int run(const std::string& command) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs while the network is set up.
  return std::system((command + " >/dev/null 2>&1").c_str());
}

inline void must(const std::string& command) {
  if (run(command) != 0) {
    throw std::runtime_error{"failed: " + command};
  }
}

/// The calling process goes to live in a namespace.
inline void enter(const std::string& space) {
  const int fd = ::open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) {
    throw std::system_error{errno, std::generic_category(), "setns"};
  }
  ::close(fd);
}

inline bool may_make_namespaces() {
  child probe{[](const teller&) {
    if (::unshare(CLONE_NEWNET) != 0) {
      ::_exit(1);
    }
  }};
  return probe.wait() == 0;
}

/// Namespaces `a` and `b` with 10.77.0.1/2, fd77::1/2 and fe80::1/2 on the interfaces `wa` and
/// `wb`.
class two_hosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_make_namespaces()) {
      GTEST_SKIP() << "no privilege to make network namespaces";
    }
    const std::string id = std::to_string(::getpid());
    a = "sca" + id;
    b = "scb" + id;
    must("ip netns add " + a);
    must("ip netns add " + b);
    must("ip -n " + a + " link add wa type veth peer name wb netns " + b);
    for (const auto& [space, wire, host] : {std::tuple{a, "wa", "1"}, std::tuple{b, "wb", "2"}}) {
      const std::string at = "ip -n " + space + " ";
      must(at + "link set lo up");
      must(at + "link set " + wire + " addrgenmode none");
      must(at + "link set " + wire + " up");
      must(at + "addr add 10.77.0." + host + "/24 dev " + wire);
      must(at + "addr add fd77::" + host + "/64 dev " + wire + " nodad");
      must(at + "addr add fe80::" + host + "/64 dev " + wire + " nodad");
    }
  }

  void TearDown() override {
    if (!a.empty()) {
      run("ip netns del " + a);
      run("ip netns del " + b);
    }
  }

  std::string a;
  std::string b;
};

}  // namespace spark_comm::testing
