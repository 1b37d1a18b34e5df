package foreign

import (
	"errors"
	"os"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Open opens and inspects a disk image that will be imported.
func Open(file string) (*os.File, error) {
	f, err := tree.OpenFile(file)
	if err != nil {
		return nil, problem.New(problem.Mistake, "import %s: it cannot be read", file).Because(problem.PathErrorCause(err)).
			Try("correct `import` of the image in site.toml")
	}
	info, err := f.Stat()
	if err == nil {
		_, err = Inspect(file, f, info.Size())
	}
	if err == nil {
		return f, nil
	}
	f.Close() //nolint:errcheck // nothing was written
	var refused *InvalidError
	if errors.As(err, &refused) {
		return nil, problem.New(problem.Mistake, "import %s: %s", file, refused.What).Try("%s", refused.Cure)
	}
	return nil, problem.New(problem.Failed, "import %s: it cannot be read", file).Because(problem.PathErrorCause(err))
}
