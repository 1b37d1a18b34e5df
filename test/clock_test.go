package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"orrery/test/need"
)

// clocked returns the path of the program, built with a clock that can be set.
var clocked = sync.OnceValues(func() (string, error) {
	to := filepath.Join(filepath.Dir(program), "clocked", "orrery")
	return to, buildClocked(to)
})

// after returns the site for a program whose clock is ahead of the host's.
func (s *site) after(ahead time.Duration) *site {
	s.Helper()
	other := *s
	var err error
	if other.program, err = clocked(); err != nil {
		s.Fatal(err)
	}
	other.env = append(slices.Clone(s.env), fmt.Sprintf("ORRERY_TEST_CLOCK=%d", int(ahead.Seconds())))
	return &other
}

// buildClocked builds the program with a clock that is ahead of the host's by ORRERY_TEST_CLOCK
// seconds. The host's own clock cannot be set for one process, and setting it would affect the
// whole machine.
func buildClocked(to string) error {
	dir := filepath.Join(need.State(), "clock") // the same each time, so that Go finds its compiled files
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	from := filepath.Join(strings.TrimSpace(string(root)), "src/time")
	text, err := os.ReadFile(filepath.Join(from, "time.go"))
	if err != nil {
		return err
	}
	now := regexp.MustCompile(`(func Now\(\) Time \{\n\tsec, nsec, mono := \w+\(\)\n)`)
	if !now.Match(text) {
		return fmt.Errorf("time.Now of this Go is not as it was")
	}
	text = now.ReplaceAll(text, []byte("${1}\tsec += aheadForTests\n"))
	overlay := fmt.Sprintf(`{"Replace": {%q: %q, %q: %q}}`, from+"/time.go", dir+"/time.go", from+"/ahead.go",
		dir+"/ahead.go")
	for name, content := range map[string]string{"time.go": string(text), "ahead.go": aheadForTests,
		"overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-overlay", dir+"/overlay.json", "-o", to, "orrery/cmd/orrery")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

const aheadForTests = `package time

import "syscall"

var aheadForTests = func() (ahead int64) {
	text, _ := syscall.Getenv("ORRERY_TEST_CLOCK")
	sign := int64(1)
	for _, c := range []byte(text) {
		if c == '-' {
			sign = -1
		} else {
			ahead = 10*ahead + int64(c-'0')
		}
	}
	return sign * ahead
}()
`
