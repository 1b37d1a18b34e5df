package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// loadModules loads the drivers of the machine's devices, the file system of its root and, with a
// disk, the file systems for it. It repeats the search for devices, because the driver of a bus
// reveals the devices on that bus.
func loadModules(filesystem string, disk bool) error {
	text, err := os.ReadFile("/" + ModuleList)
	if err != nil {
		return err
	}
	l := &loader{loaded: map[string]bool{}, insert: insert}
	if err := json.Unmarshal(text, &l.modules); err != nil {
		return fmt.Errorf("the list of modules cannot be read: %w", err)
	}
	for again := true; again; {
		before := len(l.loaded)
		found, err := devices()
		if err != nil {
			return err
		}
		for _, alias := range found {
			if err := l.load(alias); err != nil {
				return err
			}
		}
		again = len(l.loaded) > before
	}
	filesystems := []string{"fs-" + filesystem}
	if disk {
		if err := l.loadModule(Checksums); err != nil { // ext4 requests it as an algorithm, not by its name
			return err
		}
		filesystems = append(filesystems, "fs-ext4", "fs-overlay")
	}
	for _, alias := range filesystems {
		if err := l.load(alias); err != nil {
			return err
		}
	}
	return os.RemoveAll("/" + ModuleDir) // frees the memory
}

// devices returns the aliases of the present devices, as modalias files name them.
func devices() ([]string, error) {
	var all []string
	for _, bus := range []string{"pci", "virtio", "xen", "acpi"} {
		files, err := filepath.Glob("/sys/bus/" + bus + "/devices/*/modalias")
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, strings.TrimSpace(string(text)))
		}
	}
	return all, nil
}

// A loader loads modules, each once.
type loader struct {
	modules []Module
	loaded  map[string]bool
	insert  func(m *Module) error
}

// load loads the modules for an alias. If there is none, the driver is built in, or the node's own
// init loads it.
func (l *loader) load(alias string) error {
	for i := range l.modules {
		m := &l.modules[i]
		if slices.ContainsFunc(m.Aliases, func(pattern string) bool { return matchesAlias(pattern, alias) }) {
			for _, name := range append(slices.Clone(m.Needs), m.Name) {
				if err := l.loadModule(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *loader) loadModule(name string) error {
	at := slices.IndexFunc(l.modules, func(m Module) bool { return m.Name == name })
	if at < 0 || l.loaded[name] {
		return nil
	}
	l.loaded[name] = true
	if err := l.insert(&l.modules[at]); err != nil {
		return fmt.Errorf("module %s cannot be loaded: %w", name, err)
	}
	return nil
}

// matchesAlias reports whether a pattern of modules.alias(5) matches a device's alias.
func matchesAlias(pattern, alias string) bool {
	ok, err := path.Match(pattern, alias)
	return err == nil && ok
}

// insert loads a module into the kernel.
func insert(m *Module) error {
	f, err := os.Open(path.Join("/", ModuleDir, m.File))
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}
