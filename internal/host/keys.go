package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReadKeys returns what is typed at a terminal as it is typed, one or a few keys at a time, without
// echo. Keys that interrupt a program still do so. The caller calls letGo to restore the terminal.
func ReadKeys(terminal *os.File) (keys <-chan string, letGo func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, nil, err
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &now); err != nil {
		return nil, nil, err
	}
	typed := make(chan string)
	go func() { // ends only with the program: a blocked read of a terminal cannot be cancelled
		defer close(typed)
		for b := make([]byte, 16); ; {
			n, err := terminal.Read(b)
			if err != nil {
				return
			}
			typed <- string(b[:n])
		}
	}()
	return typed, func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}
