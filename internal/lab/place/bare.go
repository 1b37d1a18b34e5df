package place

import (
	"bytes"
	"context"
	"debug/elf"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	securejoin "github.com/cyphar/filepath-securejoin"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
)

// Bare is the host itself as a place to measure. The layers of the nodes are visible there at Root,
// in a mount namespace for each command. The mounts end with the command, however it ends. The root
// directory and the library path are still those of the host for the programs that the command
// starts.
type Bare struct {
	Root    string   // an empty directory of the host
	Layers  []string // directories in the store, topmost first
	Scratch string   // directory of the host for what a command writes below Root
	Tools   map[string]string

	known sync.Map // found by program
}

// resolution is how a program is run, or why it cannot be run.
type resolution struct {
	words []string
	err   error
}

// Run runs a command on the host, where Root shows the layers.
func (b *Bare) Run(ctx context.Context, c host.Command) error {
	return b.inNamespace(func() error { return host.Exec(ctx, "bare", c.Args, c, nil) })
}

// Put writes files on the host.
func (b *Bare) Put(ctx context.Context, files ...host.File) error {
	return host.Local{}.Put(ctx, files...)
}

// Dial connects from the host.
func (b *Bare) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return host.Local{}.Dial(ctx, network, address)
}

// inNamespace calls work in a mount namespace in which the layers are mounted at Root. Concurrent calls
// have separate upper directories, which are removed afterwards.
func (b *Bare) inNamespace(work func() error) error {
	for _, dir := range []string{b.Root, b.Scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	own, err := os.MkdirTemp(b.Scratch, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own) //nolint:errcheck // what is left goes with Scratch
	overlay := &rootfs.Overlay{Lower: b.Layers, Upper: filepath.Join(own, "upper"), Work: filepath.Join(own, "work"),
		Target: b.Root}
	for _, dir := range []string{overlay.Upper, overlay.Work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return overlay.WithMounted(work)
}

// Argv returns the words that run a program: those of its own dynamic linker with the libraries of
// the layer (ld.so(8)), or only its path if it is linked statically. If the layer does not have the
// program, it returns the program's name, so that running it fails with that name.
func (b *Bare) Argv(program string) []string {
	f := b.resolve(program)
	if f.err != nil {
		return []string{program}
	}
	return f.words
}

// Check returns an error if a program cannot be run from the layer.
func (b *Bare) Check(program string) error { return b.resolve(program).err }

func (b *Bare) resolve(program string) resolution {
	if f, ok := b.known.Load(program); ok {
		return f.(resolution)
	}
	var f resolution
	if path, ok := b.Tools[program]; ok {
		f.words = []string{path}
	} else {
		f.err = b.inNamespace(func() (err error) {
			f.words, err = b.resolveArgv(program)
			return err
		})
	}
	b.known.Store(program, f)
	return f
}

// resolveArgv finds how to run a program. The overlay must be mounted.
func (b *Bare) resolveArgv(program string) ([]string, error) {
	file, err := b.lookPath(program)
	if err != nil {
		return nil, err
	}
	linker, err := interpreter(file)
	if err != nil {
		return nil, problem.New(problem.Unable, "%s cannot be run outside of its layer", program).At(file).
			Because(err).
			Try("tests on the bare host can run ELF binaries, not scripts")
	}
	if linker == "" {
		return []string{file}, nil
	}
	linker, err = securejoin.SecureJoin(b.Root, linker)
	if err != nil {
		return nil, err
	}
	return []string{linker, "--library-path", strings.Join(b.libraries(), ":"), "--argv0", program, file}, nil
}

// lookPath finds a program in the layer. It resolves links relative to the root of the layer.
func (b *Bare) lookPath(program string) (string, error) {
	for dir := range strings.SplitSeq(host.Path, ":") {
		file, err := securejoin.SecureJoin(b.Root, path.Join(dir, program))
		if err != nil {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", problem.New(problem.Unable, "%s is not in the layer", program).
		Try("add the package that contains it to the test")
}

// interpreter returns the dynamic linker of a program, or "" if it is linked statically.
func interpreter(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it is only read
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			return "", err
		}
		return string(bytes.TrimRight(text, "\x00")), nil
	}
	return "", nil
}

// libraries returns the directories in which the layer's dynamic linker looks for libraries: those
// in its configuration (ld.so.conf of ldconfig(8)) and the default ones.
func (b *Bare) libraries() []string {
	var dirs []string
	files, _ := filepath.Glob(filepath.Join(b.Root, "etc/ld.so.conf.d/*.conf"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
				dirs = append(dirs, filepath.Join(b.Root, line))
			}
		}
	}
	return append(dirs, filepath.Join(b.Root, "lib"), filepath.Join(b.Root, "usr/lib"))
}
