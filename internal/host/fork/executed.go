package fork

import "syscall"

// Executed waits until all programs that this process is starting have been executed. Until then, each has a copy of whatever was open
// when it was forked, whatever is closed here meanwhile: a program that has just been written cannot be run (ETXTBSY of execve(2)).
func Executed() {
	syscall.ForkLock.RLock() // package syscall has it for writing from fork to exec (vfork(2) returns after that)
	syscall.ForkLock.RUnlock()
}
