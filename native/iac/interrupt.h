// Stopping what the core is at when its caller no longer wants it: on Ctrl-C, say.
#pragma once

#include <chrono>
#include <functional>

namespace iac {

// While one lives, check_interrupt() on the thread that made it runs `check`, which throws to stop.
class Interruptible {
 public:
  explicit Interruptible(std::function<void()> check);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  std::function<void()> check_;
  const std::function<void()>* outer_;
};

// How far checks are apart, at least, and how long a thread that may be interrupted waits at a
// time.
constexpr std::chrono::milliseconds interrupt_interval{50};

// Called between pieces of work and while waiting. Does nothing on threads that only help.
void check_interrupt();

}  // namespace iac
