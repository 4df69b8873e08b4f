#include "iac/interrupt.h"

#include <utility>

namespace iac {
namespace {

using Clock = std::chrono::steady_clock;

thread_local const std::function<void()>* check_of_thread = nullptr;
thread_local Clock::time_point checked;

}  // namespace

Interruptible::Interruptible(std::function<void()> check)
    : check_(std::move(check)), outer_(std::exchange(check_of_thread, &check_)) {}

Interruptible::~Interruptible() { check_of_thread = outer_; }

void check_interrupt() {
  if (check_of_thread == nullptr) return;
  const auto now = Clock::now();
  if (now - checked < interrupt_interval) return;
  checked = now;
  (*check_of_thread)();
}

}  // namespace iac
