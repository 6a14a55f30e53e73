// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/communicator_state.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

using state = communicator_state;
using event = communicator_event;
using action = communicator_action;

std::shared_ptr<const error> failure(errc code, const char* text) {
  return std::make_shared<const error>(code, text);
}

TEST(communicator_state, all_members_have_names) {
  std::set<std::string> names;
  for (const state each : all_communicator_states) {
    names.emplace(name_of(each));
  }
  EXPECT_EQ(names, (std::set<std::string>{"joining", "ready", "broken", "aborted", "closed"}));
  for (const event each : all_communicator_events) {
    EXPECT_NE(name_of(each), "unknown");
  }
  for (const action each : all_communicator_actions) {
    EXPECT_NE(name_of(each), "unknown");
  }
  EXPECT_EQ(name_of(static_cast<state>(99)), "unknown");
  EXPECT_EQ(name_of(static_cast<event>(99)), "unknown");
  EXPECT_EQ(name_of(static_cast<action>(99)), "unknown");
}

TEST(communicator_state, the_transition_table_is_this_one) {
  constexpr auto none = std::nullopt;

  struct row {
    event happened;
    std::optional<state> joining, ready, broken, aborted, closed;
  };

  const row rows[] = {
      {event::joined, state::ready, none, none, none, none},
      {event::failed, state::broken, state::broken, state::broken, state::aborted, state::closed},
      {event::aborted,
       state::aborted,
       state::aborted,
       state::aborted,
       state::aborted,
       state::closed},
      {event::closed, state::closed, state::closed, state::closed, state::closed, state::closed},
      {event::rejoining, none, state::joining, state::joining, state::joining, none},
  };
  ASSERT_EQ(std::size(rows), std::size(all_communicator_events));
  for (const row& each : rows) {
    SCOPED_TRACE(name_of(each.happened));
    EXPECT_EQ(next_state(state::joining, each.happened), each.joining);
    EXPECT_EQ(next_state(state::ready, each.happened), each.ready);
    EXPECT_EQ(next_state(state::broken, each.happened), each.broken);
    EXPECT_EQ(next_state(state::aborted, each.happened), each.aborted);
    EXPECT_EQ(next_state(state::closed, each.happened), each.closed);
  }
}

TEST(communicator_state, each_state_allows_these_actions) {
  constexpr auto yes = permission::allowed;
  constexpr auto nop = permission::no_effect;
  constexpr auto no = permission::refused;

  struct row {
    state in;
    permission query, operate, abort, close, reconnect;
  };

  const row rows[] = {
      {state::joining, yes, no, yes, yes, no},
      {state::ready, yes, yes, yes, yes, yes},
      {state::broken, yes, no, yes, yes, yes},
      {state::aborted, yes, no, nop, yes, yes},
      {state::closed, yes, no, nop, nop, no},
  };
  ASSERT_EQ(std::size(rows), std::size(all_communicator_states));
  for (const row& each : rows) {
    SCOPED_TRACE(name_of(each.in));
    EXPECT_EQ(permission_for(each.in, action::query), each.query);
    EXPECT_EQ(permission_for(each.in, action::operate), each.operate);
    EXPECT_EQ(permission_for(each.in, action::abort), each.abort);
    EXPECT_EQ(permission_for(each.in, action::close), each.close);
    EXPECT_EQ(permission_for(each.in, action::reconnect), each.reconnect);
  }
}

TEST(communicator_state, whatever_may_be_called_leads_somewhere) {
  for (const state each : all_communicator_states) {
    EXPECT_EQ(permission_for(each, action::reconnect) == permission::allowed,
              next_state(each, event::rejoining).has_value());
    EXPECT_EQ(permission_for(each, action::abort) == permission::no_effect,
              next_state(each, event::aborted) == each);
  }
}

TEST(communicator_state, broken_keeps_its_first_error) {
  communicator_status status;
  EXPECT_TRUE(status.apply(event::joined));
  EXPECT_TRUE(status.fail(failure(errc::peer_lost, "rank 2 closed")));
  EXPECT_FALSE(status.fail(failure(errc::timed_out, "later")));
  EXPECT_EQ(status.state(), state::broken);
  ASSERT_NE(status.first_error(), nullptr);
  EXPECT_EQ(status.first_error()->kind(), errc::peer_lost);
  try {
    status.require(action::operate);
    FAIL() << "must throw";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.kind(), errc::peer_lost);
    EXPECT_STREQ(thrown.what(), status.first_error()->what());
  }
}

TEST(communicator_state, an_abort_after_a_failure_still_tells_the_cause) {
  auto status = std::make_unique<communicator_status>(state::ready);
  status->fail(failure(errc::peer_lost, "rank 2 closed"));
  EXPECT_TRUE(status->apply(event::aborted));
  error_context where;
  where.communicator = "tp";
  try {
    status->require(action::operate, where);
    FAIL() << "must throw";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.kind(), errc::aborted);
    EXPECT_EQ(thrown.message(), "aborted after: rank 2 closed");
    EXPECT_EQ(thrown.context().communicator, "tp");
  }
}

TEST(communicator_state, reconnect_forgets_the_error) {
  communicator_status status{state::ready};
  status.fail(failure(errc::timed_out, "late"));
  EXPECT_TRUE(status.require(action::reconnect));
  EXPECT_TRUE(status.apply(event::rejoining));
  EXPECT_EQ(status.first_error(), nullptr);
  EXPECT_TRUE(status.apply(event::joined));
  EXPECT_TRUE(status.require(action::operate));
}

TEST(communicator_state, a_join_that_was_aborted_does_not_become_ready) {
  communicator_status status;
  EXPECT_TRUE(status.apply(event::aborted));
  EXPECT_FALSE(status.apply(event::joined));
  EXPECT_EQ(status.state(), state::aborted);
}

TEST(communicator_state, a_refusal_says_what_and_why) {
  struct row {
    state in;
    action wanted;
    errc code;
    const char* text;
  };

  const row rows[] = {
      {state::joining,
       action::operate,
       errc::invalid_usage,
       "cannot operate while the communicator is joining"},
      {state::joining,
       action::reconnect,
       errc::invalid_usage,
       "cannot reconnect while the communicator is joining"},
      {state::closed,
       action::operate,
       errc::invalid_usage,
       "cannot operate while the communicator is closed"},
      {state::aborted,
       action::operate,
       errc::aborted,
       "the communicator was aborted; reconnect or join anew"},
  };
  for (const row& each : rows) {
    const communicator_status status{each.in};
    try {
      status.require(each.wanted);
      FAIL() << each.text;
    } catch (const error& thrown) {
      EXPECT_EQ(thrown.kind(), each.code);
      EXPECT_EQ(thrown.message(), each.text);
    }
  }
}

TEST(communicator_state, doing_again_what_was_done_has_no_effect) {
  EXPECT_FALSE(communicator_status{state::aborted}.require(action::abort));
  EXPECT_FALSE(communicator_status{state::closed}.require(action::abort));
  EXPECT_FALSE(communicator_status{state::closed}.require(action::close));
  EXPECT_TRUE(communicator_status{state::broken}.require(action::close));
}

TEST(communicator_state, of_many_threads_that_abort_one_acts) {
  for (int round = 0; round < 50; ++round) {
    communicator_status status{state::ready};
    std::atomic<int> acted{0};
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; ++each) {
      threads.emplace_back([&] {
        status.fail(failure(errc::timed_out, "late"));
        acted += status.apply(event::aborted) ? 1 : 0;
        (void)status.first_error();
      });
    }
    for (auto& each : threads) {
      each.join();
    }
    EXPECT_EQ(acted, 1);
    EXPECT_EQ(status.state(), state::aborted);
  }
}

}  // namespace
}  // namespace spark_comm
