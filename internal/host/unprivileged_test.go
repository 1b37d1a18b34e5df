package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"orrery/test/need"
)

// TestUnprivileged checks that a program that reads untrusted files has no privileges, no network
// and nothing of its caller.
//
// Promise (Files of strangers): Programs that unpack files of strangers (`xz`, `zstd`, `dpkg-deb`)
// have no privileges. With image.TestDecompressors.
func TestUnprivileged(t *testing.T) {
	need.Integration(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of root"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ORRERY_TEST_WORD", "of root")
	script := `cat; id -u; id -G; grep -E '^(NoNewPrivs|CapPrm|CapBnd):' /proc/self/status; tail -n +3 /proc/net/dev | cut -d: -f1; echo "$$ $ORRERY_TEST_WORD"
		cat "$0" 2>&1 && echo reached; kill -0 "$1" 2>&1 && echo reached`
	out, err := Output(t.Context(), Unprivileged{}, Command{
		Args: []string{"sh", "-c", script, secret, strconv.Itoa(os.Getppid())}, Stdin: strings.NewReader("input\n"),
	}, 1<<10)
	said := string(out)
	for _, want := range []string{"input\n1899999999\n1899999999\n", "NoNewPrivs:\t1\n", "CapPrm:\t0000000000000000\n",
		"\n    lo\n1 \n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if err == nil || strings.Contains(said, "reached") || strings.Contains(said, "of root") {
		t.Errorf("it reaches what is root's: %v", err)
	}
	if t.Failed() {
		t.Log(said)
	}
}
