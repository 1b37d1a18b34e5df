package need

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// Alone reports whether a test runs in its own namespaces, where its mounts and other objects are
// invisible to other processes. If not, it runs the test there, in the namespaces given as options
// of unshare(1). A user other than root is root there, if this machine allows it.
func Alone(t *testing.T, options ...string) bool {
	t.Helper()
	const again = "ORRERY_TEST_ALONE"
	if os.Getenv(again) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		options = append(slices.Clone(options), "--user", "--map-root-user")
		if out, err := exec.Command("unshare", append(slices.Clone(options), "true")...).CombinedOutput(); err != nil {
			t.Skipf("this machine lets nobody but root have namespaces of his own: %v: %s", err, out)
		}
	}
	options = append(options, os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd := exec.Command("unshare", append(options, Covered()...)...)
	cmd.Env = append(os.Environ(), again+"="+t.Name())
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	return false
}
