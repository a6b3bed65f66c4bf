.PHONY: up test test-postgres lint lint-console docs check check-full bench faults faults-few fuzz generate help
VENV := .venv/bin

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

up: ## set everything up and run it, with a demo job
	python3 manage.py up

test: ## the tests
	python3 manage.py test

test-postgres: ## those of what writes rows beside other writers, on PostgreSQL and Valkey
	python3 manage.py test --postgres

lint: $(VENV)/lint-imports ## format, lint, types, import contracts, migrations, generated files
	$(VENV)/ruff format --check --no-cache .
	$(VENV)/ruff check --no-cache .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/python manage.py makemigrations --check --dry-run
	$(VENV)/python -m deploy.demo.bundle --check
	$(VENV)/python -m frontend.sdk_types --check
	mkdir -p .convoy && $(VENV)/python manage.py spectacular --format openapi-json --file .convoy/openapi.json
	diff -q .convoy/openapi.json docs/openapi.json
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory lint-console; \
	  else echo "npm is not there: the console was not checked"; fi

lint-console:
	cd frontend/web && npm run --silent check
	cd frontend/web && npx --no-install openapi-typescript ../../docs/openapi.json -o ../../.convoy/schema.d.ts
	diff -q .convoy/schema.d.ts frontend/web/src/api/schema.d.ts

docs: $(VENV)/lint-imports ## the documentation as a site, in .convoy/site; fails on a broken link
	UV_PROJECT_ENVIRONMENT=.venv $(VENV)/uv sync --locked --inexact --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict

check: lint test test-postgres ## lint and all tests, on SQLite and on PostgreSQL

check-full: ## lint and all tests, the laws with all their random examples
	CONVOY_HYPOTHESIS=full $(MAKE) --no-print-directory lint
	CONVOY_HYPOTHESIS=full $(VENV)/python manage.py test --hold-durations
	$(VENV)/python manage.py test --postgres

bench: $(VENV)/lint-imports ## the benchmarks, results in .convoy/bench/
	$(VENV)/python manage.py test tests/scale -m bench -s -n 0

fuzz: $(VENV)/lint-imports ## random requests to both doors: make fuzz MINUTES=10
	CONVOY_FUZZ_MINUTES=$(or $(MINUTES),10) $(VENV)/python manage.py test tests/attacks/test_fuzz.py tests/attacks/test_floods.py tests/attacks/test_rotation_beside_callers.py -s -n 0

faults: $(VENV)/lint-imports ## the whole product struck at every step: make faults SEEDS=500 FIRST=0 DATABASE=postgres
	$(VENV)/python -m tests.faults.engine --seeds $(or $(SEEDS),40) --first $(or $(FIRST),0) --database $(or $(DATABASE),postgres)

faults-few: $(VENV)/lint-imports ## six of these schedules, as CI runs them
	nice $(VENV)/python -m tests.faults.engine --database postgres --list 0,150,159,373 --at-once 2 --slow 2
	nice $(VENV)/python -m tests.faults.engine --database sqlite --list 48,52 --at-once 2 --slow 2

generate: $(VENV)/lint-imports ## everything that is made from something else
	$(VENV)/python -m deploy.demo.bundle
	$(VENV)/python manage.py spectacular --format openapi-json --file docs/openapi.json
	$(VENV)/python -m frontend.sdk_types

$(VENV)/lint-imports: uv.lock pyproject.toml
	python3 manage.py test --version
