// Package fork prepares Go's runtime for a fork whose child continues in this program with system
// calls only, as package syscall does. Between Before and execve(2), the child may not allocate,
// grow its stack or call into the runtime: its functions are marked nosplit and norace.
package fork

import _ "unsafe" // for go:linkname

// Before is called by the parent before clone(2). It blocks all signals of the thread.
//
//go:linkname Before syscall.runtime_BeforeFork
func Before()

// After is called by the parent afterwards, also if clone(2) has failed.
//
//go:linkname After syscall.runtime_AfterFork
func After()

// AfterInChild is called by the child. It takes back what this program does with signals.
//
//go:linkname AfterInChild syscall.runtime_AfterForkInChild
func AfterInChild()
