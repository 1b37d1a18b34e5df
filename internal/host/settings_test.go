package host

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeKernel returns a kernel with settings in a directory.
func fakeKernel(t *testing.T, settings map[string]string) sysctlDir {
	t.Helper()
	k := sysctlDir(t.TempDir())
	for name, value := range settings {
		if err := os.MkdirAll(filepath.Dir(k.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		k.put(t, name, value)
	}
	return k
}

func (k sysctlDir) put(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile(k.path(name), []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (k sysctlDir) expect(t *testing.T, want map[string]string) {
	t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	if got := k.settings(names); !maps.Equal(got, want) {
		t.Errorf("settings are %v instead of %v", got, want)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSettingsOfThisKernel(t *testing.T) {
	got := ReadSettings([]string{"kernel.ostype", "no.such.setting"})
	if got["kernel.ostype"] != "Linux" || len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestRestorePutsBackWhatPrepareChanged(t *testing.T) {
	before := map[string]string{"fs.a": "128", "net.b": "0", "net.high": "9999", "net.list": "1 2"}
	k, run := fakeKernel(t, before), t.TempDir()
	wanted := map[string]string{"fs.a": "8192", "net.b": "1", "net.high": "512", "not.there": "7"}
	ok(t, k.prepare(t.Context(), run, wanted))
	after := map[string]string{"fs.a": "8192", "net.b": "1", "net.high": "9999", "net.list": "1 2"}
	k.expect(t, after)
	ok(t, k.prepare(t.Context(), run, wanted)) // for a second site: there is nothing new to record
	k.expect(t, after)
	ok(t, k.restore(t.Context(), run))
	k.expect(t, before)
	if _, err := os.Stat(settingsFile(run)); err == nil {
		t.Error("the record is left")
	}
	ok(t, k.restore(t.Context(), run)) // there is no record
}

func TestRestoreLeavesWhatOthersChanged(t *testing.T) {
	k, run := fakeKernel(t, map[string]string{"a": "1", "b": "1", "c": "1"}), t.TempDir()
	ok(t, k.prepare(t.Context(), run, map[string]string{"a": "10", "b": "10", "c": "10"}))
	k.put(t, "a", "20") // higher
	k.put(t, "b", "5")  // lower, which is not enough for the next run
	ok(t, k.prepare(t.Context(), run, map[string]string{"a": "10", "b": "10", "c": "15"}))
	k.expect(t, map[string]string{"a": "20", "b": "10", "c": "15"})
	ok(t, k.restore(t.Context(), run))
	k.expect(t, map[string]string{"a": "20", "b": "5", "c": "1"})
}

func TestPrepareKilledBeforeItSet(t *testing.T) {
	k, run := fakeKernel(t, map[string]string{"a": "1"}), t.TempDir()
	ok(t, writeRecord(run, map[string]changedSetting{"a": {Former: "1", Set: "10"}}))
	ok(t, k.prepare(t.Context(), run, map[string]string{"a": "10"}))
	k.expect(t, map[string]string{"a": "10"})
	ok(t, k.restore(t.Context(), run))
	k.expect(t, map[string]string{"a": "1"})

	ok(t, writeRecord(run, map[string]changedSetting{"a": {Former: "7", Set: "10"}}))
	ok(t, k.restore(t.Context(), run))
	k.expect(t, map[string]string{"a": "1"})
}

func TestPrepareSaysWhatCannotBeSet(t *testing.T) {
	k, run := fakeKernel(t, map[string]string{"net.a": "1"}), t.TempDir()
	if err := os.WriteFile(settingsFile(run), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := k.prepare(t.Context(), run, map[string]string{"net.a": "2"})
	if err == nil || !strings.Contains(err.Error(), settingsFile(run)) {
		t.Errorf("a broken record: %v", err)
	}
}

func TestSettingOfALinkWithADotInItsName(t *testing.T) {
	if got := sysctlDir("/proc/sys").path(
		"net.ipv4.conf.eth0/100.forwarding"); got != "/proc/sys/net/ipv4/conf/eth0.100/forwarding" {
		t.Error(got)
	}
}
