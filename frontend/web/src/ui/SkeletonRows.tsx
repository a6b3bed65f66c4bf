/** Grey bars where rows will be, so that nothing jumps when they arrive. */
import { Skeleton } from '@mantine/core';

const ROWS = 8;

export function SkeletonRows({ columns }: { columns: number }) {
  return Array.from({ length: ROWS }, (_, row) => (
    <tr key={row} aria-hidden>
      {Array.from({ length: columns }, (_, column) => (
        <td key={column}>
          <Skeleton height={12} my={5} width={column === 0 ? '70%' : '45%'} />
        </td>
      ))}
    </tr>
  ));
}
