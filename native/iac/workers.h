// One pool of threads a process, started by the first parallel call and shared by all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace iac {

// How many threads share `items` pieces of work: `asked`, or as many as are useful when it is 0,
// never more than the usable processors or the items.
unsigned worker_count(unsigned asked, size_t items);

// Runs body(0) to body(items - 1), each once, in rising order of start, on the calling thread and
// up to workers - 1 others. Returns when all have ended. What a body throws ends the handing out
// of further items and is thrown here (the one of the lowest item).
void parallel_for(size_t items, unsigned workers, const std::function<void(size_t)>& body);

// The same for bodies that wait, for a network say, and need no processor meanwhile: on the calling
// thread and up to threads - 1 that are started for this call and have ended when it returns. The
// calling thread checks for interrupts while it waits for the others. What a body throws, or that
// check, also asks the bodies under way to stop, and the first of it is thrown here.
void concurrent_for(size_t items, unsigned threads, const std::function<void(size_t)>& body);

// Whether what this thread does is no longer wanted: by the concurrent_for whose body it runs, or
// by whoever holds the source of stop_this_thread_by.
bool stop_requested();
void require_wanted();  // throws Error where it is not
void stop_this_thread_by(std::stop_token stop);

}  // namespace iac
