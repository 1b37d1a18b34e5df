package need

import "testing"

// Given skips a test where the machine gives an error instead of something that the test needs. In
// make test that is a failure: nothing is skipped there that CI's machine can do.
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
