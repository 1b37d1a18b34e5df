package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSecondInterrupt: a program that ignores its context survives Ctrl-C, even if it comes twice
// in quick succession. It ends at the next Ctrl-C.
func TestSecondInterrupt(t *testing.T) {
	if os.Getenv("ORRERY_INTERRUPTED") != "" {
		forceDelay = 300 * time.Millisecond
		ctx, stop := interruptible()
		defer stop()
		fmt.Println("begun")
		<-ctx.Done()
		fmt.Println("undoing")
		time.Sleep(time.Minute)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestSecondInterrupt$")
	cmd.Env = append(os.Environ(), "ORRERY_INTERRUPTED=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "begun" {
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Process.Signal(os.Interrupt)
	if !lines.Scan() || lines.Text() != "undoing" {
		t.Errorf("it ends at the first: %q", lines.Text())
	}
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		select {
		case <-ended:
			if by := cmd.ProcessState.Sys().(syscall.WaitStatus); !by.Signaled() || by.Signal() != syscall.SIGINT {
				t.Errorf("it ended with %v", cmd.ProcessState)
			}
			return
		default:
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	t.Error("it does not end")
	_ = cmd.Process.Kill()
}
