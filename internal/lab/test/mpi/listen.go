package mpi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/problem"
)

// listen starts the listener in a place and returns when it is there. The command line comes by the channel; hangUp ends it.
func listen(ctx context.Context, p *place.Place, dir string) (asked <-chan string, hangUp func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	stay, leave := io.Pipe()
	from, to := io.Pipe()
	done, gone := make(chan error, 1), make(chan struct{})
	var once sync.Once
	go func() {
		err := p.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", listener, "sh", dir}, Stdin: stay, Stdout: to})
		_ = to.CloseWithError(io.EOF)
		done <- err
		close(gone)
	}()
	lines := make(chan string, 2)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(from); scan.Scan(); {
			lines <- strings.TrimSpace(scan.Text())
		}
		_ = from.CloseWithError(errors.New("the listener printed an endless line"))
	}()
	hangUp = func() {
		once.Do(func() {
			_ = leave.Close() // cat ends
			cancel()
			<-gone
		})
	}
	select {
	case line := <-lines:
		if line == "ready" {
			return lines, hangUp, nil
		}
		err = fmt.Errorf("the listener printed %q", line)
	case <-time.After(patience):
		err = fmt.Errorf("the listener is not there after %s", patience)
	}
	_ = leave.Close()
	cancel()
	return nil, nil, problem.New(problem.Failed, "the launch agent cannot be set up").At(p.Name).Because(errors.Join(err, <-done))
}
