// A value that each process has for itself. After a fork the child starts with a new one: another
// thread of the parent may have held the old one's lock, so it is leaked there, never touched.
#pragma once

#include <atomic>
#include <memory>

namespace iac {

// How many forks lie between the process that loaded this library and this one.
unsigned fork_generation();

template <class T>
class PerProcess {
 public:
  PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    State* state = state_.load(std::memory_order_acquire);
    if (state != nullptr && state->generation == fork_generation()) delete state;
  }

  T& operator*() const {
    State* state = state_.load(std::memory_order_acquire);
    if (state != nullptr && state->generation == fork_generation()) return state->value;
    auto fresh = std::make_unique<State>();
    fresh->generation = fork_generation();
    if (state_.compare_exchange_strong(state, fresh.get(), std::memory_order_acq_rel)) {
      return fresh.release()->value;
    }
    return state->value;  // another thread was first
  }
  T* operator->() const { return &**this; }

 private:
  struct State {
    unsigned generation = 0;
    T value;
  };
  mutable std::atomic<State*> state_{nullptr};
};

}  // namespace iac
