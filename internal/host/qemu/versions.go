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

// Versions are those of programs, which are taken down in a file: a program is asked for its
// version only if it is not the one that was asked before. To start QEMU for that takes longer than
// most commands do.
type Versions struct{ File string }

// A known program is one as it was when it was asked.
type known struct {
	Version string `json:"version"`
	Models  string `json:"models,omitempty"` // of processors, with a space between them
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Bytes   int64  `json:"bytes"`
	Changed int64  `json:"changed"` // when it was, in ns: nobody can set that
}

// Of returns the version of a program.
func (v Versions) Of(ctx context.Context, program string) (string, error) {
	return v.told(ctx, program, func(k *known) *string { return &k.Version }, Version)
}

// Models returns the models of processors that QEMU knows; none, if it does not tell.
func (v Versions) Models(ctx context.Context) []string {
	program, err := System()
	if err != nil {
		return nil
	}
	text, _ := v.told(ctx, program, func(k *known) *string { return &k.Models }, models)
	return strings.Fields(text)
}

// told returns one of the known properties of a program, and asks the program if it is not known yet.
func (v Versions) told(ctx context.Context, program string, of func(*known) *string,
	ask func(context.Context, string) (string, error)) (string, error) {
	current, err := identity(program)
	if err != nil {
		return "", err
	}
	all, _ := host.ReadJSON[map[string]known](v.File) // whatever is wrong with it, it is written anew
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
		all = map[string]known{}
	}
	all[program] = current
	_ = host.WriteJSON(v.File, 0o600, all) // where it cannot be, programs are asked each time
	return *of(&current), nil
}

// same reports whether it is the program that was asked.
func (k known) same(as known) bool {
	k.Version, k.Models, as.Version, as.Models = "", "", "", ""
	return k == as
}

// models asks QEMU which models of processors it knows: lines of "x86 NAME", up to an empty one.
func models(ctx context.Context, program string) (string, error) {
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
		} else if len(words) > 0 && strings.HasPrefix(line, " ") { // QEMU from 9.1 on leaves the first word out
			names = append(names, words[0])
		}
	}
	return strings.Join(names, " "), nil
}

// Lacks returns an error that names the first requirement of virtual machines that is missing or too old on
// this machine, or nil.
func (v Versions) Lacks(ctx context.Context) error {
	program, err := System()
	if err != nil {
		return err
	}
	version, err := v.Of(ctx, program)
	if err != nil {
		return err
	}
	if err := TooOld(version); err != nil {
		return err
	}
	return Lacks()
}

func identity(program string) (known, error) {
	var st unix.Stat_t
	if err := unix.Stat(program, &st); err != nil {
		return known{}, &os.PathError{Op: "stat", Path: program, Err: err}
	}
	return known{Device: uint64(st.Dev), Inode: st.Ino, Bytes: st.Size,
			Changed: st.Ctim.Nano()}, //nolint:unconvert // not on every architecture
		nil
}
