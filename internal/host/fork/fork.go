// Package fork prepares Go's runtime for a fork without an immediate exec.
//
// As in package syscall, the child continues in this program with system calls only. Between Before
// and execve(2), the child must not allocate, grow its stack or call into the runtime. So its
// functions are marked nosplit and norace.
package fork

import _ "unsafe" // for go:linkname

// Before is called by the parent before clone(2). It blocks all signals of the thread.
//
//go:linkname Before syscall.runtime_BeforeFork
func Before()

// After is called by the parent after clone(2), even if clone(2) has failed.
//
//go:linkname After syscall.runtime_AfterFork
func After()

// AfterInChild is called by the child. It resets this program's signal handlers.
//
//go:linkname AfterInChild syscall.runtime_AfterForkInChild
func AfterInChild()
