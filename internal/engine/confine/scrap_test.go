package confine

import (
	"fmt"
	"strings"
	"testing"
)

// TestScrap: of a program that prints without end, only the beginning is stored, in limited memory.
func TestScrap(t *testing.T) {
	f, err := OutputFile("test")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ReadOutput(f) != "" {
		t.Error("it begins with something on it")
	}
	_, err = fmt.Fprint(f, "cannot \x1b[2Jgo on\n")
	if err != nil {
		t.Fatal(err)
	}
	if said := ReadOutput(f); !strings.HasPrefix(said, "cannot ") || strings.Contains(said, "\x1b") {
		t.Errorf("%q", said)
	}
	if _, err := f.Write(make([]byte, maxStderrBytes)); err == nil {
		t.Error("it has grown")
	}
}
