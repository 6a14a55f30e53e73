// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/unique_handle.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

// Writes down what it closes; travels with the handle, as a driver's table does.
struct counting_traits {
  using handle_type = int;

  static handle_type null() noexcept { return -1; }

  void close(handle_type handle) const noexcept {
    if (closed != nullptr) {
      closed->push_back(handle);
    }
  }

  std::vector<int>* closed = nullptr;
};

using handle = unique_handle<counting_traits>;

class unique_handles : public ::testing::Test {
 protected:
  [[nodiscard]] handle own(int number) { return handle::adopt(number, {.closed = &closed_}); }

  std::vector<int> closed_;
};

static_assert(!std::is_copy_constructible_v<handle> && !std::is_copy_assignable_v<handle>);
static_assert(std::is_nothrow_move_constructible_v<handle>);
static_assert(std::is_nothrow_move_assignable_v<handle>);
static_assert(std::is_nothrow_destructible_v<handle>);
static_assert(std::is_nothrow_swappable_v<handle>);
static_assert(!std::is_constructible_v<handle, int> && !std::is_constructible_v<handle, long>);
static_assert(!std::is_constructible_v<handle, std::nullptr_t>);

struct stateless_traits {
  using handle_type = void*;

  static handle_type null() noexcept { return nullptr; }

  static void close(handle_type /*handle*/) noexcept {}
};

static_assert(sizeof(unique_handle<stateless_traits>) == sizeof(void*), "traits cost nothing");

TEST_F(unique_handles, empty_one_owns_and_closes_nothing) {
  {
    handle empty;
    EXPECT_FALSE(empty);
    EXPECT_EQ(empty.get(), counting_traits::null());
    empty.reset();
    EXPECT_EQ(empty.release(), counting_traits::null());
  }
  {
    const handle adopted_null = own(counting_traits::null());
  }
  EXPECT_TRUE(closed_.empty());
}

TEST_F(unique_handles, closes_once_at_the_end) {
  {
    const handle owner = own(7);
    EXPECT_TRUE(owner);
    EXPECT_EQ(owner.get(), 7);
    EXPECT_EQ(owner.traits().closed, &closed_);
    EXPECT_TRUE(closed_.empty());
  }
  EXPECT_EQ(closed_, std::vector{7});
}

TEST_F(unique_handles, zero_is_a_handle_where_null_is_another_value) {
  {
    const handle owner = own(0);
  }
  EXPECT_EQ(closed_, std::vector{0});
}

TEST_F(unique_handles, move_hands_the_handle_on_with_its_traits) {
  {
    handle first = own(7);
    const handle second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the subject
    EXPECT_EQ(second.get(), 7);
    EXPECT_TRUE(closed_.empty());
  }
  EXPECT_EQ(closed_, std::vector{7});
}

TEST_F(unique_handles, move_assignment_closes_the_old_one_with_the_old_traits) {
  std::vector<int> closed_elsewhere;
  {
    handle target = handle::adopt(1, {.closed = &closed_elsewhere});
    target = own(2);
    EXPECT_EQ(closed_elsewhere, std::vector{1});
    EXPECT_EQ(target.get(), 2);
    EXPECT_TRUE(closed_.empty());
  }
  EXPECT_EQ(closed_, std::vector{2});
  EXPECT_EQ(closed_elsewhere, std::vector{1});
}

TEST_F(unique_handles, move_assignment_to_itself_changes_nothing) {
  {
    handle owner = own(7);
    handle& alias = owner;
    owner = std::move(alias);
    EXPECT_EQ(owner.get(), 7);
    EXPECT_TRUE(closed_.empty());
  }
  EXPECT_EQ(closed_, std::vector{7});
}

TEST_F(unique_handles, moved_from_one_serves_again) {
  handle first = own(1);
  const handle second = std::move(first);
  first = own(3);
  EXPECT_EQ(first.get(), 3);
  first.reset();
  EXPECT_EQ(closed_, std::vector{3});
}

TEST_F(unique_handles, reset_closes_now_and_only_now) {
  handle owner = own(7);
  owner.reset();
  EXPECT_FALSE(owner);
  EXPECT_EQ(closed_, std::vector{7});
  owner.reset();
  EXPECT_EQ(closed_, std::vector{7});
}

TEST_F(unique_handles, release_gives_the_handle_away) {
  {
    handle owner = own(7);
    EXPECT_EQ(owner.release(), 7);
    EXPECT_FALSE(owner);
  }
  EXPECT_TRUE(closed_.empty());
}

TEST_F(unique_handles, swap_exchanges_handles_and_traits) {
  std::vector<int> closed_elsewhere;
  {
    handle first = own(1);
    handle second = handle::adopt(2, {.closed = &closed_elsewhere});
    std::swap(first, second);
    EXPECT_EQ(first.get(), 2);
    EXPECT_EQ(second.get(), 1);
    std::swap(first, first);
    EXPECT_EQ(first.get(), 2);
    EXPECT_TRUE(closed_.empty() && closed_elsewhere.empty());
  }
  EXPECT_EQ(closed_, std::vector{1});
  EXPECT_EQ(closed_elsewhere, std::vector{2});
}

TEST_F(unique_handles, exception_on_the_way_closes_what_was_made) {
  const auto make_two = [&] {
    const handle first = own(1);
    const handle second = own(2);
    throw std::runtime_error{"third"};
  };
  EXPECT_THROW(make_two(), std::runtime_error);
  EXPECT_EQ(closed_, (std::vector{2, 1})) << "in reverse order";
}

TEST_F(unique_handles, containers_move_them_without_closing) {
  {
    std::vector<handle> owners;
    for (int i = 0; i < 10; ++i) {
      owners.push_back(own(i));
    }
    EXPECT_TRUE(closed_.empty());
    owners.erase(owners.begin() + 3);
    EXPECT_EQ(closed_, std::vector{3});
  }
  EXPECT_EQ(closed_.size(), 10U);
}

}  // namespace
}  // namespace spark_comm
