package need

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// OnScreen returns what some work writes to a terminal. It skips the test if there are no
// terminals.
func OnScreen(t testing.TB, work func(terminal *os.File)) string {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ours.Close()
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 25, Cols: 120}); err != nil { // without a size, bars are not drawn
		t.Fatal(err)
	}
	var sent bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&sent, ours) // it ends with EIO
	}()
	work(theirs)
	time.Sleep(50 * time.Millisecond)
	theirs.Close()
	<-done
	return strings.ReplaceAll(sent.String(), "\r\n", "\n")
}
