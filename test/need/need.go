// Package need says what a test needs of the machine that it runs on.
package need

import (
	"os"
	"testing"
)

// Integration skips a test that makes containers, networks or mounts, unless that was asked for:
// `go test ./...` is quick and changes nothing on the machine.
func Integration(t testing.TB) {
	t.Helper()
	if !Asked() {
		t.Skip("integration test: run make test as root")
	}
	if err := TakeTurn(); err != nil {
		t.Fatal(err)
	}
}

// SameIDs skips a test in which the ids of a node begin with this user's, if its group has another
// number: a node's root has both at once.
func SameIDs(t testing.TB) {
	t.Helper()
	if os.Geteuid() != os.Getegid() {
		t.Skip("the user and its group have different numbers")
	}
}

// Asked reports whether integration tests shall run.
func Asked() bool { return os.Getenv("ORRERY_INTEGRATION") == "1" && os.Geteuid() == 0 }

// Times returns how often a test with random or large input tries: a few times in the quick run of
// `go test ./...`, the whole of it in make test.
func Times(few, whole int) int {
	if Asked() {
		return whole
	}
	return few
}

// Kills returns how often a test kills what it has begun: enough to see what has broken in make
// test, and as often as it takes to find what nobody has thought of in make test-chaos.
func Kills(some, many int) int {
	if os.Getenv("ORRERY_TEST_LONG") == "1" {
		return many
	}
	return some
}

// State is where integration tests keep layers from one run to the next, so that only the first run
// builds them.
func State() string {
	if dir := os.Getenv("ORRERY_TEST_STATE"); dir != "" {
		return dir
	}
	return "/var/cache/orrery-test"
}

// Run is where integration tests keep what is not to outlive a reboot. Two runs of them at once
// need two of both.
func Run() string {
	if dir := os.Getenv("ORRERY_TEST_RUN"); dir != "" {
		return dir
	}
	return "/run/orrery-test"
}
