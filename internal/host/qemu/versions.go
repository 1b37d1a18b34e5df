package qemu

import (
	"context"
	"maps"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// Versions caches the versions of programs in a file. A program is asked only if its file has
// changed since. Starting QEMU for that takes longer than most commands.
type Versions struct{ File string }

// A cachedProgram is what a program answered, with the state of its file at that time.
type cachedProgram struct {
	Version string `json:"version"`
	Models  string `json:"models,omitempty"` // of processors, separated by spaces
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Bytes   int64  `json:"bytes"`
	Changed int64  `json:"changed"` // change time in ns, which no program can set
}

// Of returns the version of a program.
func (v Versions) Of(ctx context.Context, program string) (string, error) {
	return v.property(ctx, program, func(k *cachedProgram) *string { return &k.Version }, Version)
}

// Models returns the processor models that QEMU knows, or none if QEMU cannot be asked.
func (v Versions) Models(ctx context.Context) []string {
	program, err := System()
	if err != nil {
		return nil
	}
	text, _ := v.property(ctx, program, func(k *cachedProgram) *string { return &k.Models }, askModels)
	return strings.Fields(text)
}

// property returns one of the properties of a program, from the file or by asking the program.
func (v Versions) property(ctx context.Context, program string, of func(*cachedProgram) *string,
	ask func(context.Context, string) (string, error)) (string, error) {
	current, err := statProgram(program)
	if err != nil {
		return "", err
	}
	all, _ := host.ReadJSON[map[string]cachedProgram](v.File) // ignore errors: the file is then written again
	if stored, ok := all[program]; ok && stored.same(current) {
		current = stored
	}
	if answer := *of(&current); answer != "" {
		return answer, nil
	}
	if *of(&current), err = ask(ctx, program); err != nil {
		return "", err
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[string]cachedProgram{}
	}
	all[program] = current
	_ = host.WriteJSON(v.File, 0o600, all) // ignore the error: programs are then asked each time
	return *of(&current), nil
}

// same reports whether as is the same state of the program's file.
func (k cachedProgram) same(as cachedProgram) bool {
	k.Version, k.Models, as.Version, as.Models = "", "", "", ""
	return k == as
}

// askModels asks QEMU for its processor models: lines of "x86 NAME", up to an empty one.
func askModels(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := host.Program(ctx, program, "-cpu", "help").Output()
	if err != nil {
		return "", err
	}
	var names []string
	list, _, _ := strings.Cut(string(out), "\n\n")
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "x86" {
			names = append(names, words[1])
		} else if len(words) > 0 && strings.HasPrefix(line, " ") { // QEMU from 9.1 on omits the first word
			names = append(names, words[0])
		}
	}
	return strings.Join(names, " "), nil
}

// CheckRequirements returns an error that names the first requirement of virtual machines that is missing or
// too old on this machine, or nil.
func (v Versions) CheckRequirements(ctx context.Context) error {
	program, err := System()
	if err != nil {
		return err
	}
	version, err := v.Of(ctx, program)
	if err != nil {
		return err
	}
	if err := CheckVersion(version); err != nil {
		return err
	}
	return CheckRequirements()
}

func statProgram(program string) (cachedProgram, error) {
	var st unix.Stat_t
	if err := unix.Stat(program, &st); err != nil {
		return cachedProgram{}, &os.PathError{Op: "stat", Path: program, Err: err}
	}
	return cachedProgram{
			Device: uint64(st.Dev), //nolint:unconvert // not on every architecture
			Inode:  st.Ino, Bytes: st.Size, Changed: st.Ctim.Nano()},
		nil
}
