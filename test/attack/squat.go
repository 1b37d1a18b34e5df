package main

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// squat binds the abstract name of a container's command socket, as LXC's monitor would. It accepts
// connections without answering, until its standard input ends. It prints a line when it is ready.
func squat(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: squat NAME")
	}
	l, err := net.Listen("unix", "@"+args[0])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	go func() {
		var held []net.Conn // kept, so that clients do not see them close
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
			fmt.Println("asked", len(held))
		}
	}()
	_, err = os.Stdin.Read(make([]byte, 1))
	_ = err // the end of the input ends this program
	return nil
}
