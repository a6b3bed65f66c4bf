/** The jobs that match, as a file for a spreadsheet or a script. */
import { Button, Menu } from '@mantine/core';
import { Download } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { type JobFilters, searchOf } from './filters.ts';

export function ExportMenu({ filters }: { filters: JobFilters }) {
  const { t } = useTranslation();
  const href = (form: string) => `/api/v1/jobs/export/?form=${form}&${searchOf(filters)}`;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="xs" variant="default" leftSection={<Download size={14} />}>
          {t('list.export')}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component="a" href={href('csv')} download="jobs.csv">
          {t('list.exportCsv')}
        </Menu.Item>
        <Menu.Item component="a" href={href('json')} download="jobs.json">
          {t('list.exportJson')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
