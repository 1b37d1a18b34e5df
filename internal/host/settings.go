package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// procSys is the directory of the kernel's settings (proc(5)).
const procSys = "/proc/sys"

// ReadSettings reads kernel settings by their names, such as net.ipv4.ip_forward (sysctl(8)). It omits
// settings that the kernel does not have.
func ReadSettings(names []string) map[string]string { return sysctlDir(procSys).settings(names) }

// RaiseSettings raises kernel settings to the values wanted, as far as the kernel has them. It records
// their former values in runDir, for Restore. It does not change a setting that is higher already.
func RaiseSettings(ctx context.Context, runDir string, wanted map[string]string) error {
	return sysctlDir(procSys).prepare(ctx, runDir, wanted)
}

// RestoreSettings restores the settings that Prepare changed, and removes the record. It does not change a
// setting that another process has changed since.
func RestoreSettings(ctx context.Context, runDir string) error {
	return sysctlDir(procSys).restore(ctx, runDir)
}

// sysctlDir is the directory of a kernel's settings.
type sysctlDir string

// A changedSetting is a setting that Prepare has changed.
type changedSetting struct {
	Former string `json:"former"`
	Set    string `json:"set"`
}

func (k sysctlDir) path(name string) string {
	// A dot in the name of a link is written as a slash: net.ipv4.conf.eth0/100.forwarding.
	swap := func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}
	return filepath.Join(string(k), strings.Map(swap, name))
}

func (k sysctlDir) get(name string) (string, bool) {
	text, err := os.ReadFile(k.path(name))
	return strings.Join(strings.Fields(string(text)), " "), err == nil
}

func (k sysctlDir) set(name, value string) error {
	err := os.WriteFile(k.path(name), []byte(value+"\n"), 0o644)
	if err == nil {
		return nil
	}
	return problem.New(problem.Unable, "the kernel setting %s could not be set to %s", name, value).Because(err).
		Try("run orrery as root, on the host itself or in a container that may set it")
}

func (k sysctlDir) settings(names []string) map[string]string {
	all := make(map[string]string, len(names))
	for _, name := range names {
		if value, ok := k.get(name); ok {
			all[name] = value
		}
	}
	return all
}

func (k sysctlDir) prepare(ctx context.Context, runDir string, wanted map[string]string) error {
	unlock, err := lockSettings(ctx, runDir)
	if err != nil {
		return err
	}
	defer unlock()
	record, err := readRecord(runDir)
	if err != nil {
		return err
	}
	var lacking []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		current, ok := k.get(name)
		if !ok || isAtLeast(current, wanted[name]) {
			continue
		}
		// If the current value is the one that Orrery has set, keep the recorded former value. Otherwise
		// another process has changed the setting since, and its value is the former one.
		former := current
		if entry, ok := record[name]; ok && current == entry.Set {
			former = entry.Former
		}
		record[name] = changedSetting{former, wanted[name]}
		lacking = append(lacking, name)
	}
	if len(lacking) == 0 {
		return nil
	}
	// Write the record first. If the run is killed after that, the record names settings that were
	// not changed, which Restore ignores.
	if err := writeRecord(runDir, record); err != nil {
		return err
	}
	for _, name := range lacking {
		if err := k.set(name, wanted[name]); err != nil {
			return err
		}
	}
	return nil
}

func (k sysctlDir) restore(ctx context.Context, runDir string) error {
	if _, err := os.Stat(settingsFile(runDir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := lockSettings(ctx, runDir)
	if err != nil {
		return err
	}
	defer unlock()
	record, err := readRecord(runDir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		if now, ok := k.get(name); !ok || now != record[name].Set {
			continue
		}
		if err := k.set(name, record[name].Former); err != nil {
			return err
		}
	}
	return os.Remove(settingsFile(runDir))
}

// isAtLeast reports whether the current value is at least the one wanted. Values that are not numbers
// must be equal.
func isAtLeast(current, wanted string) bool {
	h, err1 := strconv.ParseInt(current, 10, 64)
	w, err2 := strconv.ParseInt(wanted, 10, 64)
	if err1 != nil || err2 != nil {
		return current == wanted
	}
	return h >= w
}

func settingsFile(runDir string) string { return filepath.Join(runDir, "settings.json") }

func readRecord(runDir string) (map[string]changedSetting, error) {
	record := map[string]changedSetting{}
	text, err := os.ReadFile(settingsFile(runDir))
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, problem.New(problem.Failed, "the record of kernel settings cannot be read").Because(err).
			At(settingsFile(runDir)).
			Try("remove the file; the settings stay as they are until the next boot")
	}
	return record, nil
}

func writeRecord(runDir string, record map[string]changedSetting) error {
	return WriteJSON(settingsFile(runDir), 0o600, record)
}

// lockSettings prevents runs for different sites from changing the record at the same time.
func lockSettings(ctx context.Context, runDir string) (unlock func(), err error) {
	return lockFile(ctx, filepath.Join(runDir, "settings.lock"), "the lock of the kernel settings")
}
