// Package measure times an operation and prints one line, `name ns_per_op bytes maxrss_kb`: CPU time of one operation
// (user and system, the garbage collector's too), the heap that one operation needs at its peak above what was there
// before, and the process' peak resident memory.
package measure

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

const heapMetric = "/memory/classes/heap/objects:bytes"

func usage() syscall.Rusage {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		log.Fatal(err)
	}
	return ru
}

// CPU is the time that the process has used so far.
func CPU() time.Duration {
	ru := usage()
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// Print writes the line.
func Print(name string, perOp time.Duration, bytes uint64) {
	fmt.Printf("%s %d %d %d\n", name, perOp.Nanoseconds(), bytes, usage().Maxrss)
}

// File reads an input whole.
func File(path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	return b
}

// Heap is the number of bytes in objects, live or not yet collected.
func Heap() uint64 {
	sample := []metrics.Sample{{Name: heapMetric}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peakHeap runs op once and returns by how much the heap grew at most, looked at every millisecond.
func peakHeap(op func()) uint64 {
	runtime.GC()
	base, peak := Heap(), uint64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if now := Heap(); now > base && now-base > peak {
				peak = now - base
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	op()
	close(done)
	<-stopped
	return peak
}

// Run does op n times after one run to warm up, and prints the line.
func Run(name string, n int, op func()) {
	op()
	start := CPU()
	for i := 0; i < n; i++ {
		op()
	}
	perOp := (CPU() - start) / time.Duration(max(n, 1))
	Print(name, perOp, peakHeap(op))
}
