#include "iac/workers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "iac/error.h"
#include "iac/interrupt.h"
#include "iac/per_process.h"
#include "iac/platform.h"

namespace iac {
namespace {

class Job {
 public:
  Job(size_t items, const std::function<void(size_t)>& body) : items_(items), body_(body) {}
  // One that asks its bodies to stop when the first of them fails.
  Job(size_t items, const std::function<void(size_t)>& body, std::stop_source& stop)
      : items_(items), body_(body), stop_(&stop) {}

  // Works until no item is left or `stay` says no.
  template <class Stay>
  void work(Stay stay) {
    while (stay()) {
      const size_t item = next_.fetch_add(1);
      if (item >= items_) return;
      if (!failed_.load(std::memory_order_relaxed)) {
        try {
          body_(item);
        } catch (...) {
          fail(item);
        }
      }
      if (done_.fetch_add(1) + 1 == items_) {
        const std::lock_guard lock(mutex_);
        finished_.notify_all();
      }
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return done_ == items_; });
    if (error_) std::rethrow_exception(error_);
  }

  // Returns when every item is done or left out. An interrupt is an error of the job.
  void wait_interruptibly() {
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, interrupt_interval, [&] { return done_ == items_; })) {
      if (failed_) continue;
      lock.unlock();
      try {
        check_interrupt();
      } catch (...) {
        fail(0);
      }
      lock.lock();
    }
  }

 private:
  // With the exception that is being handled.
  void fail(size_t item) {
    {
      const std::lock_guard lock(mutex_);
      if (item < failed_item_) {
        failed_item_ = stop_ == nullptr ? item : 0;  // those that were stopped do not count
        error_ = std::current_exception();
      }
      failed_ = true;
    }
    if (stop_ != nullptr) stop_->request_stop();
  }

  const size_t items_;
  const std::function<void(size_t)>& body_;  // the caller keeps it until every item is done
  std::stop_source* const stop_ = nullptr;
  std::atomic<size_t> next_{0}, done_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  size_t failed_item_ = static_cast<size_t>(-1);
  std::exception_ptr error_;
};

class Pool {
 public:
  Pool() : cpus_(platform::usable_cpus()) {}

  void run(size_t items, unsigned workers, const std::function<void(size_t)>& body) {
    const auto job = std::make_shared<Job>(items, body);
    {
      const std::lock_guard lock(mutex_);
      start_threads();
      for (unsigned i = 1; i < workers; ++i) queue_.push_back(job);
    }
    wake_.notify_all();
    ++busy_;
    job->work([] { return true; });
    --busy_;
    {
      const std::lock_guard lock(mutex_);
      std::erase(queue_, job);  // what no thread came to take
    }
    job->wait();
  }

 private:
  // The calling threads work as well, so one thread fewer than processors.
  void start_threads() {
    while (threads_ + 1 < cpus_) {
      try {
        std::thread([this] { help(); }).detach();
      } catch (const std::system_error&) {
        return;  // none to be had now: the caller does the work
      }
      ++threads_;
    }
  }

  void help() {
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return !queue_.empty(); });
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      ++busy_;
      // When callers alone keep the processors busy, the job is left to its own.
      job->work([&] { return busy_ <= cpus_; });
      --busy_;
    }
  }

  const unsigned cpus_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> queue_;
  unsigned threads_ = 0;
  std::atomic<unsigned> busy_{0};
};

// Leaked on purpose: its threads wait until the process ends.
PerProcess<Pool>& pool() {
  static auto* const instance = new PerProcess<Pool>;
  return *instance;
}

thread_local std::stop_token stop_of_thread;

}  // namespace

unsigned worker_count(unsigned asked, size_t items) {
  if (items <= 1) return 1;  // without asking the system
  const unsigned cpus = platform::usable_cpus();
  const unsigned wanted = asked == 0 ? cpus : std::min(asked, cpus);
  return static_cast<unsigned>(std::min<size_t>(items, wanted));
}

void parallel_for(size_t items, unsigned workers, const std::function<void(size_t)>& body) {
  if (items == 0) return;
  if (workers <= 1 || items == 1) {
    for (size_t i = 0; i < items; ++i) body(i);
    return;
  }
  pool()->run(items, workers, body);
}

void concurrent_for(size_t items, unsigned threads, const std::function<void(size_t)>& body) {
  std::stop_source stop;
  const std::stop_callback outer(stop_of_thread, [&] { stop.request_stop(); });
  Job job(items, body, stop);
  const auto work = [&] {
    const std::stop_token before = std::exchange(stop_of_thread, stop.get_token());
    job.work([] { return true; });
    stop_of_thread = before;
  };
  std::vector<std::thread> helpers;
  const size_t wanted = std::clamp<size_t>(items, 1, std::max(threads, 1u)) - 1;
  helpers.reserve(wanted);
  try {
    while (helpers.size() < wanted) helpers.emplace_back(work);
  } catch (const std::system_error&) {  // no more to be had now
  }
  work();
  job.wait_interruptibly();
  for (std::thread& helper : helpers) helper.join();
  job.wait();
}

bool stop_requested() { return stop_of_thread.stop_requested(); }

void require_wanted() {
  if (stop_requested()) throw system_error(ECANCELED, "reading was stopped");
}

void stop_this_thread_by(std::stop_token stop) { stop_of_thread = std::move(stop); }

}  // namespace iac
