package need

import "testing"

// Given skips a test if the machine returns an error for something that the test needs. In make
// test, the test fails instead, since CI's machine must support everything.
func Given(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case Asked():
		t.Fatalf("this machine gives no %s: %v", what, err)
	default:
		t.Skipf("this machine gives no %s: %v", what, err)
	}
}
